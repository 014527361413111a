// A load generator: one thread, keep-alive connections, on each the next request as soon as the last is answered.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tocsin::bench {

// A whole request as it goes over the wire.
std::string request_text(const std::string& method, const std::string& path, const std::string& body = "");

struct Load {
  int port = 0;
  int connections = 32;
  int expected_status = 200;
  // Writes request number n = 0, 1, ...; false when there are no more.
  std::function<bool(std::int64_t n, std::string& request)> next;
  // May be empty. Called for expected answers only.
  std::function<void(std::int64_t n, const std::string& body)> on_answer;
};

struct LoadReport {
  std::int64_t answered = 0;    // as expected
  std::int64_t unexpected = 0;  // with another status
  std::string first_unexpected;
  double seconds = 0;              // from the first request to the last answer
  std::vector<double> latency_ms;  // of every answer as expected, sorted

  double per_second() const { return static_cast<double>(answered) / seconds; }
};

// Throws Failure when a connection breaks, or nothing is answered for half a minute.
LoadReport run_load(const Load& load);

// The same, and throws Failure when an answer is not as expected.
LoadReport run_strict_load(const Load& load);

}  // namespace tocsin::bench
