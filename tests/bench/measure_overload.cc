// More than can be done: the highest rate that is held, and what happens at half as much again.
#include <algorithm>

#include "bench/measurements.h"
#include "bench/subject.h"
#include "postgres/text.h"

namespace tocsin::bench {
namespace {

using std::chrono::seconds;

constexpr const char* kLight = "light";
constexpr std::size_t kLightRate = 50;
constexpr std::size_t kStep = 10'000, kMostRate = 100'000;
constexpr double kHeldMs = 1'000;  // a rate is held when its p99 stays below

struct OverloadOutcome {
  double done_per_s = 0;  // while it lasts, after its first two seconds
  double p99_ms = 0, latest_ms = 0, light_p99_ms = 0;
  double behind_s = 0;  // from the last deadline to the last job done
};

double done_between(Subject& subject, WallTime from, WallTime to) {
  pqxx::nontransaction tx(subject.sql());
  return tx
      .exec1("SELECT count(*) FROM tocsin.job WHERE status = 'done' AND biz_type = " + tx.quote(kType) +
             " AND finished_at >= " + tx.quote(to_pg(from)) + " AND finished_at < " + tx.quote(to_pg(to)))[0]
      .as<double>();
}

// All jobs are there before the first is due: what creates them takes no processor from what is measured.
OverloadOutcome offer(Bench& bench, std::size_t rate) {
  const auto lasts = seconds(bench.sizes.overload_s);
  const std::size_t n = rate * static_cast<std::size_t>(lasts.count());
  Subject subject(bench.server, {bench.binary});
  subject.put_type(kLight);
  const WallTime start = subject.db_now() + seconds(8 + static_cast<int>(n / 25'000));
  const auto seed = static_cast<std::uint64_t>(bench.round);
  const std::size_t lights = kLightRate * static_cast<std::size_t>(lasts.count());
  subject.create(jobs_due_over(start, lasts, lights, 6000 + seed, kLight));
  subject.create(jobs_due_over(start, lasts, n, 5000 + seed));
  subject.settle();
  if (subject.db_now() > start) throw Failure("the jobs cannot be created before they are due");
  subject.wait_until(start + lasts, "offering " + std::to_string(rate) + "/s");
  subject.wait_until_finished(static_cast<std::int64_t>(n + lights), "what is left");
  OverloadOutcome outcome;
  outcome.done_per_s =
      done_between(subject, start + seconds(2), start + lasts) / static_cast<double>((lasts - seconds(2)).count());
  outcome.behind_s = std::max(0.0, std::chrono::duration<double>(subject.last_finished_at() - start - lasts).count());
  const auto late = subject.lateness_ms(), light = subject.lateness_ms({}, kLight);
  outcome.p99_ms = quantile(late, 0.99);
  outcome.latest_ms = late.empty() ? 0 : late.back();
  outcome.light_p99_ms = quantile(light, 0.99);
  return outcome;
}

}  // namespace

void measure_overload(Bench& bench) {
  const OverloadOutcome quiet = offer(bench, 1'000);
  std::size_t held = 0;
  OverloadOutcome at_held;
  for (std::size_t rate = kStep; rate <= kMostRate; rate += kStep) {
    const OverloadOutcome outcome = offer(bench, rate);
    if (outcome.p99_ms > kHeldMs) break;
    held = rate, at_held = outcome;
  }
  if (held == 0) throw Failure("no rate is held");
  const OverloadOutcome over = offer(bench, held * 3 / 2);
  Results& results = bench.results;
  results.add("overload.held", static_cast<double>(held));
  results.add("overload.held_p99", at_held.p99_ms);
  results.add("overload.done", over.done_per_s);
  results.add("overload.share", over.done_per_s / static_cast<double>(held));
  results.add("overload.latest", over.latest_ms / 1000);
  results.add("overload.behind", over.behind_s);
  results.add("overload.light_quiet_p99", quiet.light_p99_ms);
  results.add("overload.light_p99", over.light_p99_ms);
}

}  // namespace tocsin::bench
