// run_load(): a load generator on one thread. It keeps `connections` open, and sends the next request on each as soon
// as the last one is answered.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tocsin::bench {

// An HTTP/1.1 request as text.
std::string request_text(const std::string& method, const std::string& path, const std::string& body = "");

struct Load {
  int port = 0;
  int connections = 32;
  int expected_status = 200;
  // Writes request number n (0, 1, ...) into `request`. False: there are no more.
  std::function<bool(std::int64_t n, std::string& request)> next;
  // Called for each answer with expected_status; may be empty.
  std::function<void(std::int64_t n, const std::string& body)> on_answer;
};

struct LoadReport {
  std::int64_t answered = 0;    // answers with expected_status
  std::int64_t unexpected = 0;  // answers with another status
  std::string first_unexpected;
  double seconds = 0;              // from the first request to the last answer
  std::vector<double> latency_ms;  // of each answer with expected_status, sorted

  double per_second() const { return static_cast<double>(answered) / seconds; }
};

// Throws Failure if a connection breaks, or no request is answered for half a minute.
LoadReport run_load(const Load& load);

// As run_load(); also throws Failure if an answer has another status than expected.
LoadReport run_strict_load(const Load& load);

}  // namespace tocsin::bench
