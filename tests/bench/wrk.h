// run_wrk(): sends requests with wrk, a widely used HTTP load generator.
#pragma once

#include <cstdint>
#include <string>

namespace tocsin::bench {

struct WrkReport {
  std::int64_t answered = 0;    // status 2xx or 3xx
  std::int64_t unexpected = 0;  // with another status
  std::int64_t stale = 0;       // the script's global variable of this name
  double seconds = 0;
  double p50_ms = 0, p99_ms = 0;
  double per_second() const { return static_cast<double>(answered) / seconds; }
};

inline constexpr int kWrkThreads = 2;

// `script`: Lua. wrk calls its function request() in each of kWrkThreads threads; the global `lane` is 1 or 2 there.
// The threads share `connections`. Throws Failure: wrk is missing, or cannot connect.
WrkReport run_wrk(int port, double seconds, const std::string& script, int connections = 32);

}  // namespace tocsin::bench
