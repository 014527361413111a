// How fast jobs are created and cancelled through REST.
#include <chrono>
#include <iostream>

#include "bench/measurements.h"
#include "bench/subject.h"
#include "cli/progress.h"

namespace tocsin::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr auto kFar = std::chrono::hours(24);  // never due within the run

// Requests for so many seconds.
LoadReport load_for(double seconds, int port, int status, const std::string& what,
                    const std::function<std::string(std::int64_t)>& request_of) {
  Progress progress(what);
  const auto start = SteadyClock::now();
  Load load;
  load.port = port;
  load.expected_status = status;
  load.next = [&](std::int64_t n, std::string& request) {
    const double elapsed = std::chrono::duration<double>(SteadyClock::now() - start).count();
    progress.show(static_cast<std::int64_t>(elapsed * 1000), static_cast<std::int64_t>(seconds * 1000), "ms");
    if (elapsed >= seconds) return false;
    request = request_of(n);
    return true;
  };
  return run_strict_load(load);
}

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

  const WallTime due = subject.db_now() + kFar;
  const auto creates = load_for(seconds, subject.port(), 201, "creating one by one", [&](std::int64_t n) {
    return request_text("POST", "/v1/jobs", job_body({n, due}));
  });
  bench.results.add("single.create", creates.per_second());
  bench.results.add("single.create_p50", quantile(creates.latency_ms, 0.5));
  bench.results.add("single.create_p99", quantile(creates.latency_ms, 0.99));
}

void measure_cancel(Bench& bench) {
  Subject subject(bench.server, {bench.binary});
  std::vector<std::string> ids;
  subject.create(jobs_due_at(subject.db_now() + kFar, bench.sizes.cancel_jobs), Subject::kBatch, &ids);
  subject.settle();
  Progress progress("cancelling");
  Load load;
  load.port = subject.port();
  load.next = [&](std::int64_t n, std::string& request) {
    const auto total = static_cast<std::int64_t>(ids.size());
    progress.show(n, total);
    if (n >= total) return false;
    request = request_text("POST", "/v1/jobs/" + ids[static_cast<std::size_t>(n)] + "/cancel");
    return true;
  };
  const LoadReport report = run_load(load);
  if (report.unexpected > 0) std::cerr << "note: a cancel was answered " << report.first_unexpected << '\n';
  bench.results.add("cancel.rate", report.per_second());
  bench.results.add("cancel.p99", quantile(report.latency_ms, 0.99));
  bench.results.add("cancel.refused", static_cast<double>(report.unexpected));
}

void measure_batch(Bench& bench) {
  for (const std::size_t batch : {500, 10'000})
    bench.results.add("batch.create_" + std::to_string(batch), batch_rate(bench, batch));
}

}  // namespace tocsin::bench
