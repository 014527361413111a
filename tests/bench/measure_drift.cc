// How late jobs are when the node's clock and the database's run apart, as far as ntpd lets them, and when the
// database's is set by milliseconds.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

#include "bench/measurements.h"
#include "bench/workloads.h"

namespace tocsin::bench {
namespace {

constexpr int kStep_ms = 5, kEvery_ms = 5'000;

std::string preloaded_library() {
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return (here / "libtocsin_drifting_clock.so").string();
}

std::vector<double> lateness_ms(Bench& bench, PostgresServer& server, const SubjectOptions& options) {
  Subject subject(server, options);
  return fire_over(subject, bench.sizes.drift_jobs, std::chrono::seconds(bench.sizes.drift_s),
                   3000 + static_cast<std::uint64_t>(bench.round));
}

// The node's clock runs `ppm` millionths faster than the database's.
double late_p99_ms(Bench& bench, int ppm) {
  SubjectOptions options{bench.binary};
  if (ppm != 0)
    options.wrapper = {"env", "LD_PRELOAD=" + preloaded_library(), "TOCSIN_DRIFT_PPM=" + std::to_string(ppm)};
  return quantile(lateness_ms(bench, bench.server, options), 0.99);
}

// Throws Failure unless the database's clock is set now and then: the server could not load the library.
void expect_steps(PostgresServer& server) {
  pqxx::connection connection(server.url());
  std::optional<double> least, most;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(2 * kEvery_ms);
  while (std::chrono::steady_clock::now() < end && (!least || *most - *least < kStep_ms * 0.8)) {
    const auto here = std::chrono::system_clock::now().time_since_epoch();
    pqxx::nontransaction tx(connection);
    const auto there = tx.exec1("SELECT extract(epoch FROM clock_timestamp()) * 1000, pg_sleep(0.1)")[0].as<double>();
    const double ahead = there - std::chrono::duration<double, std::milli>(here).count();
    least = std::min(least.value_or(ahead), ahead);
    most = std::max(most.value_or(ahead), ahead);
  }
  if (*most - *least < kStep_ms * 0.8) throw Failure("the clock of PostgreSQL is not set");
}

void measure_steps(Bench& bench, double none) {
  PostgresServer server(bench.server, {{"LD_PRELOAD", preloaded_library()},
                                       {"TOCSIN_STEP_MS", std::to_string(kStep_ms)},
                                       {"TOCSIN_STEP_EVERY_MS", std::to_string(kEvery_ms)}});
  expect_steps(server);
  const auto late = lateness_ms(bench, server, {bench.binary});
  bench.results.add("drift.steps", quantile(late, 0.99));
  bench.results.add("drift.steps_ratio", quantile(late, 0.99) / none);
  bench.results.add("drift.steps_most", late.empty() ? 0 : late.back());
}

}  // namespace

void measure_drift(Bench& bench) {
  const double none = late_p99_ms(bench, 0);
  bench.results.add("drift.none", none);
  for (const int ppm : {500, 200, -200, -500}) {
    const double late = late_p99_ms(bench, ppm);
    const std::string figure = (ppm > 0 ? "drift.fast_" : "drift.slow_") + std::to_string(std::abs(ppm));
    bench.results.add(figure, late);
    bench.results.add(figure + "_ratio", late / none);
  }
  measure_steps(bench, none);
}

}  // namespace tocsin::bench
