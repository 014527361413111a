// What several measurements do with a node.
#pragma once

#include <string>
#include <vector>

#include "bench/http_load.h"
#include "bench/subject.h"

namespace tocsin::bench {

inline constexpr auto kFar = std::chrono::hours(24);  // never due within the run

// Options of a node that keeps done jobs for so many days, and the others for ever.
std::vector<std::string> retain(const std::string& days);
inline constexpr const char* kAllDays = "3650";

// Creates `n` jobs due at random milliseconds of `spread`, the first in `lead`, and waits for all. The lateness of each
// in ms, sorted. Throws Failure unless each fired once, and was created before the first was due.
std::vector<double> fire_over(Subject& subject, std::size_t n, Duration spread, std::uint64_t seed,
                              Duration lead = std::chrono::seconds(5));

// Jobs per second from the instant that all `n` are due until the last is recorded as done.
double drain_rate(Subject& subject, std::size_t n);

// Requests for so many seconds; each must be answered with `status`. REQUIRES of `on_answer`: as in Load.
LoadReport load_for(double seconds, int port, int status, const std::string& what,
                    const std::function<std::string(std::int64_t)>& request_of,
                    std::function<void(std::int64_t, const std::string&)> on_answer = {});

// Single creates of jobs that are not due within the run. `ids`, when given, receives the job_ids of the first
// `most_ids`.
LoadReport create_for(Subject& subject, double seconds, std::size_t most_ids = 0,
                      std::vector<std::string>* ids = nullptr);

// Cancels each by its id; an answer other than 200 is counted, not thrown.
LoadReport cancel_all(Subject& subject, const std::vector<std::string>& ids);

}  // namespace tocsin::bench
