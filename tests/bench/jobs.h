// The jobs of a workload, as requests.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tocsin/clock.h"

namespace tocsin::bench {

inline constexpr const char* kType = "bench";

struct BenchJob {
  std::int64_t number = 0;  // unique within the run: the business key
  WallTime due{};
  const char* type = kType;
};

std::string biz_id_of(const BenchJob& job);
// About 200 bytes, as a caller's data often is.
std::string attribute_of(const BenchJob& job);
// The body of POST /v1/jobs, and of POST /v1/jobs/batch.
std::string job_body(const BenchJob& job);
std::string batch_body(std::span<const BenchJob> jobs);

// `n` jobs, all due at the same time.
std::vector<BenchJob> jobs_due_at(WallTime due, std::size_t n);
// `n` jobs due at random milliseconds of [start, start + spread).
std::vector<BenchJob> jobs_due_over(WallTime start, Duration spread, std::size_t n, std::uint64_t seed,
                                    const char* type = kType);

}  // namespace tocsin::bench
