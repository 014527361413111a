// How late jobs fire, and how fast they do when all are due at once.
#include "bench/measurements.h"
#include "bench/subject.h"

namespace tocsin::bench {
namespace {

using std::chrono::seconds;

constexpr seconds kLead(5);  // from the first create to the first deadline
constexpr int kTries = 4;

void require_all(std::size_t fired, std::size_t jobs) {
  if (fired != jobs) throw Failure(std::to_string(fired) + " of " + std::to_string(jobs) + " jobs fired");
}

// Jobs per second from the instant they are due until the last is recorded as done.
double drain_rate(Bench& bench, int claimers) {
  const std::size_t n = bench.sizes.drain_jobs;
  Subject subject(bench.server, {bench.binary, R"({"kind":"noop"})", {"--claimers", std::to_string(claimers)}});
  seconds lead(4 + static_cast<int>(n / 10'000));
  for (int i = 0; i < kTries; ++i, lead *= 2) {
    const WallTime due = subject.db_now() + lead;
    subject.create(jobs_due_at(due, n));
    subject.settle();
    const bool is_in_time = subject.db_now() < due;
    subject.wait_until(due, "waiting for the deadline");
    subject.wait_until_finished(static_cast<std::int64_t>(n), "draining");
    if (!is_in_time) continue;  // some were due before all were there
    require_all(subject.lateness_ms().size(), n * static_cast<std::size_t>(i + 1));
    return static_cast<double>(n) / std::chrono::duration<double>(subject.last_finished_at() - due).count();
  }
  throw Failure("the jobs cannot be created before they are due");
}

}  // namespace

void measure_lateness(Bench& bench) {
  const Sizes& sizes = bench.sizes;
  const seconds spread(sizes.lateness_s);
  Subject subject(bench.server, {bench.binary});
  const WallTime start = subject.db_now() + kLead;
  subject.create(jobs_due_over(start, spread, sizes.lateness_jobs, 1000 + static_cast<std::uint64_t>(bench.round)));
  if (subject.db_now() > start) throw Failure("the first jobs were due before all were created");
  subject.wait_until(start + spread, "firing");
  subject.wait_until_finished(static_cast<std::int64_t>(sizes.lateness_jobs), "the last of them");

  const std::vector<double> lateness = subject.lateness_ms();
  require_all(lateness.size(), sizes.lateness_jobs);
  bench.results.add("lateness.min", lateness.front());
  bench.results.add("lateness.p50", quantile(lateness, 0.5));
  bench.results.add("lateness.p90", quantile(lateness, 0.9));
  bench.results.add("lateness.p99", quantile(lateness, 0.99));
  bench.results.add("lateness.p99_9", quantile(lateness, 0.999));
  bench.results.add("lateness.max", lateness.back());
  double early = 0;
  for (const double ms : lateness) early += ms < 0;
  bench.results.add("lateness.early", early);
}

void measure_drain(Bench& bench) {
  for (const int claimers : bench.claimers)
    bench.results.add("drain.claimers_" + std::to_string(claimers), drain_rate(bench, claimers));
}

}  // namespace tocsin::bench
