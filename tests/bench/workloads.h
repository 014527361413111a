// Workloads that several measurements share.
#pragma once

#include <string>
#include <vector>

#include "bench/http_load.h"
#include "bench/subject.h"

namespace tocsin::bench {

inline constexpr auto kFar = std::chrono::hours(24);  // never due within the run

// Options of a node that keeps done jobs for `days` days, and other finished jobs for kAllDays.
std::vector<std::string> retain(const std::string& days);
inline constexpr const char* kAllDays = "3650";

// Creates `n` jobs due at random milliseconds of `spread`, the first in `lead`, and waits for all. Returns their
// lateness in milliseconds, sorted. Throws Failure unless each was created before the first was due, and fired once.
std::vector<double> fire_over(Subject& subject, std::size_t n, Duration spread, std::uint64_t seed,
                              Duration lead = std::chrono::seconds(5));

// Jobs per second, from the instant at which all `n` jobs are due until the last is recorded as done.
double drain_rate(Subject& subject, std::size_t n);

// Sends requests for `seconds`. Throws Failure if one is not answered with `status`. `on_answer`: as in Load.
LoadReport load_for(double seconds, int port, int status, const std::string& what,
                    const std::function<std::string(std::int64_t)>& request_of,
                    std::function<void(std::int64_t, const std::string&)> on_answer = {});

// Creates jobs one by one that are not due within the run. `ids`: if not null, gets the first `most_ids` job_ids.
LoadReport create_for(Subject& subject, double seconds, std::size_t most_ids = 0,
                      std::vector<std::string>* ids = nullptr);

// Cancels each job by its id. Answers other than 200 are counted.
LoadReport cancel_all(Subject& subject, const std::vector<std::string>& ids);

}  // namespace tocsin::bench
