// How late jobs fire, and how fast they do when all are due at once.
#include "bench/measurements.h"
#include "bench/workloads.h"

namespace tocsin::bench {

void measure_lateness(Bench& bench) {
  const Sizes& sizes = bench.sizes;
  Subject subject(bench.server, {bench.binary});
  const std::vector<double> lateness = fire_over(subject, sizes.lateness_jobs, std::chrono::seconds(sizes.lateness_s),
                                                 1000 + static_cast<std::uint64_t>(bench.round));
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
  for (const int claimers : bench.claimers) {
    const std::string count = std::to_string(claimers);
    Subject subject(bench.server, {bench.binary, R"({"kind":"noop"})", {"--claimers", count}});
    bench.results.add("drain.claimers_" + count, drain_rate(subject, bench.sizes.drain_jobs));
  }
}

}  // namespace tocsin::bench
