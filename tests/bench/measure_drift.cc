// How late jobs are when the node's clock and the database's run apart, as far as ntpd lets them.
#include <filesystem>

#include "bench/measurements.h"
#include "bench/workloads.h"

namespace tocsin::bench {
namespace {

// The node's clock runs `ppm` millionths faster than the database's.
double late_p99_ms(Bench& bench, int ppm) {
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  SubjectOptions options{bench.binary};
  if (ppm != 0)
    options.wrapper = {"env", "LD_PRELOAD=" + (here / "libtocsin_drifting_clock.so").string(),
                       "TOCSIN_DRIFT_PPM=" + std::to_string(ppm)};
  Subject subject(bench.server, options);
  const auto late = fire_over(subject, bench.sizes.drift_jobs, std::chrono::seconds(bench.sizes.drift_s),
                              3000 + static_cast<std::uint64_t>(bench.round));
  return quantile(late, 0.99);
}

}  // namespace

void measure_drift(Bench& bench) {
  const double none = late_p99_ms(bench, 0), fast = late_p99_ms(bench, 500), slow = late_p99_ms(bench, -500);
  bench.results.add("drift.none", none);
  bench.results.add("drift.fast", fast);
  bench.results.add("drift.fast_ratio", fast / none);
  bench.results.add("drift.slow", slow);
  bench.results.add("drift.slow_ratio", slow / none);
}

}  // namespace tocsin::bench
