// Drives requests with wrk, a load generator that many systems are measured with.
#pragma once

#include <cstdint>
#include <string>

namespace tocsin::bench {

struct WrkReport {
  std::int64_t answered = 0;    // with 2xx or 3xx
  std::int64_t unexpected = 0;  // with another status
  std::int64_t stale = 0;       // what the script counted in its global of this name
  double seconds = 0;
  double p50_ms = 0, p99_ms = 0;
  double per_second() const { return static_cast<double>(answered) / seconds; }
};

inline constexpr int kWrkThreads = 2;

// `script` is Lua; its requests go over `connections` of two threads, for so many seconds. wrk calls its function
// request() in each thread, where the global `lane` is 1 or 2. Throws Failure: wrk is missing, or cannot connect.
WrkReport run_wrk(int port, double seconds, const std::string& script, int connections = 32);

}  // namespace tocsin::bench
