// What millions of jobs that wait for a far deadline cost those that are due, created and cancelled meanwhile.
#include <iostream>
#include <memory>

#include "bench/preload.h"
#include "bench/stand.h"

namespace tocsin::bench {
namespace {

constexpr double kCreateShare = 0.4;  // of the time that creates are measured for, in each round

}  // namespace

void measure_depth(Bench& bench) {
  const Sizes& sizes = bench.sizes;
  const auto rounds = static_cast<std::size_t>(bench.rounds);
  // Together the rounds fire as many jobs as `lateness` does in one.
  const PassSizes pass_sizes{.lateness_jobs = sizes.lateness_jobs / rounds,
                             .lateness_spread = std::chrono::seconds(sizes.lateness_s) / bench.rounds,
                             .create_s = kCreateShare * sizes.request_s,
                             .cancels = sizes.cancel_jobs};
  std::vector<std::unique_ptr<Stand>> stands;
  for (const std::size_t depth : sizes.depths) {
    stands.push_back(std::make_unique<Stand>(bench, std::vector<std::string>{}));
    write_pending(stands.back()->url(), depth,
                  "statement_timestamp() + interval '30 days' + i % 2592000 * interval '1 second'", Indexes::rebuilt);
    settle(stands.back()->url());
  }
  std::vector<std::vector<Pass>> passes(stands.size());
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < stands.size(); ++i) {
      std::cerr << "  pass " << round + 1 << '/' << rounds << ", " << sizes.depths[i] << " waiting\n";
      passes[i].push_back(stands[i]->run_pass(pass_sizes, 3000 + round));
      Point point = {{"round", static_cast<double>(round)}, {"depth", static_cast<double>(sizes.depths[i])}};
      for (auto& value : passes[i].back().point()) point.push_back(std::move(value));
      bench.results.add_point("depth", std::move(point));
    }
  }
  for (std::size_t i = 0; i < stands.size(); ++i)
    compare(bench.results, "depth." + std::to_string(sizes.depths[i]), passes[0], passes[i]);
}

}  // namespace tocsin::bench
