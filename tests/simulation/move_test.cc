// Hundreds of lives of an installation of several databases, each from one seed: shards move, and jobs go from the
// outbox of one database to another.
//   TOCSIN_SIM_SEEDS=n      how many (default 120)
//   TOCSIN_SIM_FIRST=n      the first of them (default 1)
//   TOCSIN_SIM_SEED=n       only this one
//   TOCSIN_SIM_TRACE=1      prints all that happens in it
#include <gtest/gtest.h>

#include <cstdlib>

#include "simulation/move_life.h"
#include "simulation/relay_life.h"

namespace tocsin {
namespace {

std::uint64_t move_number(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 0) : otherwise;
}

TEST(SimulatedMoves, LoseNothingAndHaveOneOwnerWhateverTheSeed) {
  const std::uint64_t only = move_number("TOCSIN_SIM_SEED", 0);
  const std::uint64_t first = only ? only : move_number("TOCSIN_SIM_FIRST", 1);
  const std::uint64_t n = only ? 1 : move_number("TOCSIN_SIM_SEEDS", 120);
  MoveLifeReport sum;
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t seed = first + i;
    const MoveLifeReport report = run_move_life(seed, move_number("TOCSIN_SIM_TRACE", 0) != 0);
    sum.jobs += report.jobs, sum.switched += report.switched, sum.rolled_back += report.rolled_back;
    sum.killed += report.killed, sum.rescued += report.rescued, sum.faults += report.faults;
    if (report.failures.empty()) continue;
    ADD_FAILURE() << "seed " << seed
                  << " broke a promise; see it again with: scripts/dev sim --filter SimulatedMoves.* --seed " << seed
                  << " -v\n  " << report.failures.front();
    break;
  }
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
  const std::uint64_t only = move_number("TOCSIN_SIM_SEED", 0);
  const std::uint64_t first = only ? only : move_number("TOCSIN_SIM_FIRST", 1);
  const std::uint64_t n = only ? 1 : move_number("TOCSIN_SIM_SEEDS", 120);
  RelayLifeReport sum;
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t seed = first + i;
    const RelayLifeReport report = run_relay_life(seed, {}, move_number("TOCSIN_SIM_TRACE", 0) != 0);
    sum.jobs += report.jobs, sum.cancelled += report.cancelled, sum.killed += report.killed;
    sum.faults += report.faults;
    if (report.failures.empty()) continue;
    ADD_FAILURE() << "seed " << seed
                  << " broke a promise; see it again with: scripts/dev sim --filter SimulatedOutbox.* --seed " << seed
                  << " -v\n  " << report.failures.front();
    break;
  }
  std::printf("%zu entries, %zu cancelled, %zu nodes killed, %llu faults\n", sum.jobs, sum.cancelled, sum.killed,
              static_cast<unsigned long long>(sum.faults));
  if (n < 100 || HasFailure()) return;
  EXPECT_GT(sum.cancelled, n);
  EXPECT_GT(sum.killed, n);
}

TEST(SimulatedOutbox, NoticesEveryMistakePlantedInItsStore) {
  for (bool FakeOutboxBugs::*bug : {&FakeOutboxBugs::forgets_what_it_took, &FakeOutboxBugs::cancels_claimed}) {
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
