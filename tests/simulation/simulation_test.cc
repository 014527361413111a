// Thousands of lives of a cluster, each from one seed (seeds.h), each checked against the promises.
#include <gtest/gtest.h>

#include <set>

#include "simulation/life.h"
#include "simulation/seeds.h"

namespace tocsin {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kSeeds = 20, kRepeatedSeeds = 1;  // a hundred times slower
#elif defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t kSeeds = 200, kRepeatedSeeds = 2;
#else
constexpr std::uint64_t kSeeds = 2000, kRepeatedSeeds = 5;
#endif

std::string told(std::uint64_t seed, const LifeReport& report) {
  std::string text = "seed " + std::to_string(seed) + " broke a promise; see it again with: scripts/dev sim --seed " +
                     std::to_string(seed) + " -v\n";
  for (const std::string& failure : report.failures) text += "  " + failure + '\n';
  return text;
}

TEST(Simulation, KeepsEveryPromiseWhateverTheSeed) {
  LifeOptions options;
  options.is_printed = is_trace_wanted();
  LifeReport sum;
  const std::uint64_t n = for_each_seed("lives", kSeeds, [&](std::uint64_t seed) {
    const LifeReport report = run_life(seed, options);
    sum.jobs += report.jobs, sum.starts += report.starts, sum.faults += report.faults, sum.events += report.events;
    sum.losses.created += report.losses.created, sum.losses.cancelled += report.losses.cancelled;
    sum.losses.outcomes += report.losses.outcomes, sum.losses.claims += report.losses.claims;
    sum.losses.ids += report.losses.ids;
    for (std::size_t c = 0; c < sum.counters.size(); ++c) sum.counters[c] += report.counters[c];
    if (!report.failures.empty()) ADD_FAILURE() << told(seed, report);
    return report.failures.empty();
  });
  std::printf("%zu jobs, %zu starts, %llu faults, %llu events\n", sum.jobs, sum.starts,
              static_cast<unsigned long long>(sum.faults), static_cast<unsigned long long>(sum.events));
  const auto print_loss = [&](const char* of, std::int64_t count) {
    std::printf("  lost %-11s %lld\n", of, static_cast<long long>(count));
    if (n >= 200 && !HasFailure()) {
      EXPECT_GT(count, 0) << "no standby lacked " << of << ", or no id came again";
    }
  };
  print_loss("jobs", sum.losses.created);
  print_loss("cancels", sum.losses.cancelled);
  print_loss("outcomes", sum.losses.outcomes);
  print_loss("claims", sum.losses.claims);
  print_loss("ids", sum.losses.ids);
  for (int c = 0; c < kCounters; ++c) {
    std::printf("  %-16s %lld\n", name_of(static_cast<Counter>(c)),
                static_cast<long long>(sum.counters[static_cast<std::size_t>(c)]));
    // A path that no seed walks is not tested: then the worlds have become too kind.
    if (n >= 200 && !HasFailure()) {
      EXPECT_GT(sum.counters[static_cast<std::size_t>(c)], 0) << name_of(static_cast<Counter>(c));
    }
  }
}

TEST(Simulation, RepeatsItselfFromTheSameSeed) {
  for (std::uint64_t seed = 1; seed <= kRepeatedSeeds; ++seed) {
    const LifeReport first = run_life(seed), second = run_life(seed);
    EXPECT_EQ(first.trace_hash, second.trace_hash) << "seed " << seed;
    EXPECT_EQ(first.events, second.events);
  }
  EXPECT_NE(run_life(1).trace_hash, run_life(2).trace_hash);
}

// The control: where it counts as a loss, the checker finds what a lagging standby has lost.
TEST(Simulation, FindsWhatALaggingStandbyLoses) {
  LifeOptions options;
  options.may_lose = false;
  bool has_lost_job = false, has_lost_cancel = false;
  for (std::uint64_t seed = 1; seed <= 300 && !(has_lost_job && has_lost_cancel); ++seed) {
    for (const std::string& failure : run_life(seed, options).failures) {
      has_lost_job = has_lost_job || failure.starts_with("I1");
      has_lost_cancel = has_lost_cancel || failure.starts_with("I3");
    }
  }
  EXPECT_TRUE(has_lost_job);
  EXPECT_TRUE(has_lost_cancel);
}

// Mistakes of the store that show at run time; the contract suite notices all of them.
TEST(Simulation, NoticesEveryMistakePlantedInTheStore) {
  constexpr std::uint64_t kMostSeeds = 300;
  // No part of a world reads the limit or the locks: the engine counts what it gets and stops the process when it is
  // too much. No caller looks for rows that were rolled back.
  const std::set<std::string> of_the_contract_alone = {"ignores_limit", "ignores_locks", "shows_uncommitted"};
  for (const auto& [name, bug] : kFakeBugs) {
    if (of_the_contract_alone.contains(name)) continue;
    LifeOptions options;
    options.bugs.*bug = true;
    std::uint64_t seed = 1;
    LifeReport report = run_life(seed, options);
    while (report.failures.empty() && seed < kMostSeeds) report = run_life(++seed, options);
    EXPECT_FALSE(report.failures.empty()) << name << " went unnoticed";
    if (!report.failures.empty())
      std::printf("  %-22s seed %3llu  %s\n", name, static_cast<unsigned long long>(seed), report.failures[0].c_str());
  }
}

// The claims of these functions are lost by every crash: only the transaction of the call can tell.
TEST(Simulation, FindsAFunctionThatIsCalledUnderALostClaim) {
  constexpr std::uint64_t kMostSeeds = 300;
  LifeOptions options;
  options.function_bugs.ignores_token = true;
  std::uint64_t seed = 1;
  LifeReport report = run_life(seed, options);
  while (report.failures.empty() && seed < kMostSeeds) report = run_life(++seed, options);
  ASSERT_FALSE(report.failures.empty());
  std::printf("  seed %llu  %s\n", static_cast<unsigned long long>(seed), report.failures[0].c_str());
  EXPECT_TRUE(report.failures[0].starts_with("effect")) << report.failures[0];
}

}  // namespace
}  // namespace tocsin
