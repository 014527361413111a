// BenchJob: a job of a workload, and the REST requests that create it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tocsin/clock.h"

namespace tocsin::bench {

inline constexpr const char* kType = "bench";  // name of the usual type

struct BenchJob {
  std::int64_t number = 0;  // unique in a run; part of the biz_id
  WallTime due{};
  const char* type = kType;
};

std::string biz_id_of(const BenchJob& job);
// About 200 bytes of JSON, as callers' data often is.
std::string attribute_of(const BenchJob& job);
// job_body(): the body of POST /v1/jobs. batch_body(): of POST /v1/jobs/batch.
std::string job_body(const BenchJob& job);
std::string batch_body(std::span<const BenchJob> jobs);

// `n` jobs, all due at the same time.
std::vector<BenchJob> jobs_due_at(WallTime due, std::size_t n);
// `n` jobs due at random milliseconds of [start, start + spread).
std::vector<BenchJob> jobs_due_over(WallTime start, Duration spread, std::size_t n, std::uint64_t seed,
                                    const char* type = kType);

}  // namespace tocsin::bench
