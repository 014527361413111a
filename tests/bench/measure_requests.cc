// How fast jobs are created and cancelled through REST.
#include "bench/measurements.h"
#include "bench/workloads.h"

namespace tocsin::bench {
namespace {

double batch_rate(Bench& bench, std::size_t batch) {
  Subject subject(bench.server, {bench.binary});
  return subject.create(jobs_due_at(subject.db_now() + kFar, bench.sizes.batch_jobs), batch).per_second();
}

}  // namespace

void measure_single(Bench& bench) {
  Subject subject(bench.server, {bench.binary});
  const double seconds = bench.sizes.request_s;
  const std::string nothing = request_text("GET", "/healthz");
  const auto health = load_for(seconds, subject.port(), 200, "GET /healthz", [&](std::int64_t) { return nothing; });
  bench.results.add("single.healthz", health.per_second());

  const LoadReport creates = create_for(subject, seconds);
  bench.results.add("single.create", creates.per_second());
  bench.results.add("single.create_p50", quantile(creates.latency_ms, 0.5));
  bench.results.add("single.create_p99", quantile(creates.latency_ms, 0.99));
}

void measure_cancel(Bench& bench) {
  Subject subject(bench.server, {bench.binary});
  std::vector<std::string> ids;
  subject.create(jobs_due_at(subject.db_now() + kFar, bench.sizes.cancel_jobs), Subject::kBatch, &ids);
  subject.settle();
  const LoadReport report = cancel_all(subject, ids);
  bench.results.add("cancel.rate", report.per_second());
  bench.results.add("cancel.p99", quantile(report.latency_ms, 0.99));
  bench.results.add("cancel.refused", static_cast<double>(report.unexpected));
}

void measure_batch(Bench& bench) {
  for (const std::size_t batch : {500U, 10'000U})
    bench.results.add("batch.create_" + std::to_string(batch), batch_rate(bench, batch));
}

}  // namespace tocsin::bench
