#include "pipeline/shard_rotation.h"

#include <gtest/gtest.h>

#include <vector>

namespace tocsin {
namespace {

using namespace std::chrono_literals;

TEST(ShardRotation, GivesEveryShardOneTurnPerPeriodAndMakesUpForIdleIntervals) {
  ShardRotation rotation(10s, 1s);
  std::vector<int> turns(20);
  for (std::size_t interval = 2; interval <= 10; interval += 2) {
    int n = 0;
    for (; rotation.next(interval); ++n)
      for (Shard shard = 0; shard < 20; ++shard) turns[static_cast<std::size_t>(shard)] += rotation.is_turn_of(shard);
    EXPECT_EQ(n, 2);
  }
  EXPECT_EQ(turns, std::vector<int>(20, 1));
}

TEST(ShardRotation, HasNoTurnBeforeAnIntervalHasEnded) {
  ShardRotation rotation(10s, 1s);
  EXPECT_FALSE(rotation.next(0));
  EXPECT_TRUE(rotation.next(1));
  EXPECT_FALSE(rotation.next(1));
}

TEST(ShardRotation, APeriodShorterThanAnIntervalGivesAllShardsEachTurn) {
  ShardRotation rotation(500ms, 1s);
  ASSERT_TRUE(rotation.next(1));
  for (Shard shard = 0; shard < 20; ++shard) EXPECT_TRUE(rotation.is_turn_of(shard));
}

}  // namespace
}  // namespace tocsin
