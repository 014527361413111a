// How fast, and how late, jobs reach an HTTP service.
#include <algorithm>

#include "bench/deliveries.h"
#include "bench/measurements.h"
#include "bench/subject.h"
#include "bench/wrk.h"

namespace tocsin::bench {
namespace {

using std::chrono::seconds;

struct WebhookOutcome {
  double per_second = 0;
  std::vector<double> lateness_ms;  // sorted
};

// How far the database's clock is ahead of this program's.
Duration clock_offset(Subject& subject) {
  const auto now = [] { return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now()); };
  const auto before = now();
  const WallTime there = subject.db_now();
  return there - (before + (now() - before) / 2);
}

WebhookOutcome deliver(Bench& bench, std::size_t n, seconds spread) {
  Deliveries receiver;
  const Json handler = {{"kind", "webhook"}, {"url", receiver.url()}};
  Subject subject(bench.server, {bench.binary, handler.dump()});
  const WallTime start = subject.db_now() + seconds(5);
  subject.create(jobs_due_over(start, spread, n, 2000 + static_cast<std::uint64_t>(bench.round)));
  subject.wait_until(start + spread, "delivering");
  subject.wait_until_finished(static_cast<std::int64_t>(n), "the last deliveries");
  const Duration offset = clock_offset(subject);
  subject.stop();

  const auto& deliveries = receiver.stop();
  if (deliveries.size() != n)
    throw Failure(std::to_string(deliveries.size()) + " deliveries of " + std::to_string(n) + " jobs");
  WebhookOutcome outcome;
  WallTime last{};
  for (const auto& delivery : deliveries) {
    const auto due_us = Json::parse(delivery.body).at("data").at("attribute").at("due_us").get<std::int64_t>();
    const Duration late = delivery.at + offset - WallTime(Duration(due_us));
    outcome.lateness_ms.push_back(static_cast<double>(late.count()) / 1000);
    last = std::max(last, delivery.at + offset);
  }
  std::sort(outcome.lateness_ms.begin(), outcome.lateness_ms.end());
  outcome.per_second = static_cast<double>(n) / std::chrono::duration<double>(last - start).count();
  return outcome;
}

// What the receiver takes from a client that does nothing else.
double ceiling(double for_seconds) {
  Deliveries receiver;
  return run_wrk(receiver.port(), for_seconds,
                 "local text = wrk.format('POST', '/fire', {}, string.rep('x', 700))\n"
                 "function request() return text end\n")
      .per_second();
}

}  // namespace

void measure_webhook(Bench& bench) {
  bench.results.add("webhook.ceiling", ceiling(bench.sizes.webhook_s));
  const WebhookOutcome spread = deliver(bench, bench.sizes.webhook_jobs, seconds(bench.sizes.webhook_s));
  bench.results.add("webhook.rate", spread.per_second);
  bench.results.add("webhook.p50", quantile(spread.lateness_ms, 0.5));
  bench.results.add("webhook.p99", quantile(spread.lateness_ms, 0.99));
  bench.results.add("webhook.burst", deliver(bench, bench.sizes.burst_jobs, seconds(0)).per_second);
}

}  // namespace tocsin::bench
