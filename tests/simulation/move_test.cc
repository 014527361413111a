// Hundreds of lives of an installation of several databases, each from one seed (seeds.h): shards move, and jobs go
// from the outbox of one database to another.
#include <gtest/gtest.h>

#include "simulation/move_life.h"
#include "simulation/relay_life.h"
#include "simulation/seeds.h"

namespace tocsin {
namespace {

constexpr std::uint64_t kLives = 120;

TEST(SimulatedMoves, LoseNothingAndHaveOneOwnerWhateverTheSeed) {
  MoveLifeReport sum;
  const std::uint64_t n = for_each_seed("lives with moves", kLives, [&](std::uint64_t seed) {
    const MoveLifeReport report = run_move_life(seed, is_trace_wanted());
    sum.jobs += report.jobs, sum.switched += report.switched, sum.rolled_back += report.rolled_back;
    sum.killed += report.killed, sum.rescued += report.rescued, sum.faults += report.faults;
    if (report.failures.empty()) return true;
    ADD_FAILURE() << "seed " << seed
                  << " broke a promise; see it again with: scripts/dev sim --filter SimulatedMoves.* --seed " << seed
                  << " -v\n  " << report.failures.front();
    return false;
  });
  std::printf("%zu jobs, %zu moves, %zu rolled back, %zu commands killed, %zu freezes ended by a node, %llu faults\n",
              sum.jobs, sum.switched, sum.rolled_back, sum.killed, sum.rescued,
              static_cast<unsigned long long>(sum.faults));
  if (n < 100 || HasFailure()) return;
  EXPECT_GT(sum.switched, n);
  EXPECT_GT(sum.rolled_back, 0U);
  EXPECT_GT(sum.killed, n);
  EXPECT_GT(sum.rescued, 0U);
}

TEST(SimulatedOutbox, MakesEveryEntryOneJobWhateverTheSeed) {
  RelayLifeReport sum;
  const std::uint64_t n = for_each_seed("lives with an outbox", kLives, [&](std::uint64_t seed) {
    const RelayLifeReport report = run_relay_life(seed, {}, is_trace_wanted());
    sum.jobs += report.jobs, sum.cancelled += report.cancelled, sum.killed += report.killed;
    sum.rescheduled += report.rescheduled, sum.lost += report.lost, sum.faults += report.faults;
    if (report.failures.empty()) return true;
    ADD_FAILURE() << "seed " << seed
                  << " broke a promise; see it again with: scripts/dev sim --filter SimulatedOutbox.* --seed " << seed
                  << " -v\n  " << report.failures.front();
    return false;
  });
  std::printf(
      "%zu entries, %zu cancelled, %zu rescheduled, %zu given back by failovers, %zu nodes killed, %llu faults\n",
      sum.jobs, sum.cancelled, sum.rescheduled, sum.lost, sum.killed, static_cast<unsigned long long>(sum.faults));
  if (n < 100 || HasFailure()) return;
  EXPECT_GT(sum.cancelled, n);
  EXPECT_GT(sum.rescheduled, n);
  EXPECT_GT(sum.lost, n);
  EXPECT_GT(sum.killed, n);
}

TEST(SimulatedOutbox, NoticesEveryMistakePlantedInItsStore) {
  for (bool FakeOutboxBugs::*bug :
       {&FakeOutboxBugs::forgets_what_it_took, &FakeOutboxBugs::cancels_claimed, &FakeOutboxBugs::changes_keyed,
        &FakeOutboxBugs::drops_later_changes, &FakeOutboxBugs::compares_clocks, &FakeOutboxBugs::repeats_changes,
        &FakeOutboxBugs::settles_changed}) {
    FakeOutboxBugs bugs;
    bugs.*bug = true;
    bool is_noticed = false;
    for (std::uint64_t seed = 1; seed <= 100 && !is_noticed; ++seed)
      is_noticed = !run_relay_life(seed, bugs).failures.empty();
    EXPECT_TRUE(is_noticed);
  }
}

}  // namespace
}  // namespace tocsin
