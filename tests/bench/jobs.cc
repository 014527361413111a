#include "bench/jobs.h"

#include "base/random.h"
#include "core/rfc3339.h"

namespace tocsin::bench {
namespace {

const std::string kPad(140, 'x');

}  // namespace

std::string biz_id_of(const BenchJob& job) { return "bench-" + std::to_string(job.number); }

std::string attribute_of(const BenchJob& job) {
  return R"({"run":"bench","i":)" + std::to_string(job.number) + R"(,"due_us":)" +
         std::to_string(job.due.time_since_epoch().count()) + R"(,"pad":")" + kPad + R"("})";
}

std::string job_body(const BenchJob& job) {
  return std::string(R"({"biz_type":")") + job.type + R"(","biz_id":")" + biz_id_of(job) + R"(","action_time":")" +
         rfc3339(job.due) + R"(","attribute":)" + attribute_of(job) + "}";
}

std::string batch_body(std::span<const BenchJob> jobs) {
  std::string body = R"({"jobs":[)";
  body.reserve(jobs.size() * 360);
  for (const BenchJob& job : jobs) {
    if (body.back() == '}') body += ',';
    body += job_body(job);
  }
  return body + "]}";
}

std::vector<BenchJob> jobs_due_at(WallTime due, std::size_t n) { return jobs_due_over(due, Duration(0), n, 0); }

std::vector<BenchJob> jobs_due_over(WallTime start, Duration spread, std::size_t n, std::uint64_t seed,
                                    const char* type) {
  Random random(seed);
  const auto spread_ms =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(spread).count());
  std::vector<BenchJob> jobs;
  jobs.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto offset_ms = spread_ms ? static_cast<std::int64_t>(random.below(spread_ms)) : 0;
    jobs.push_back({static_cast<std::int64_t>(i), start + std::chrono::milliseconds(offset_ms), type});
  }
  return jobs;
}

}  // namespace tocsin::bench
