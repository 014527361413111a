#include "pipeline/shard_tenure.h"

#include <gtest/gtest.h>

#include "pipeline/gained_shards.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

std::shared_ptr<const std::vector<Shard>> shards(std::vector<Shard> all) {
  return std::make_shared<const std::vector<Shard>>(std::move(all));
}

TEST(ShardTenure, AShardSettlesOnceItHasBeenOwnedForTheWholeHandover) {
  ShardTenure tenure(10s);
  const auto owned = shards({1, 2});
  tenure.note(owned, MonoTime(5s));
  EXPECT_FALSE(tenure.has_handover_ended(1));
  EXPECT_TRUE(tenure.has_handover_ended(3)) << "of another node";
  tenure.note(owned, MonoTime(14999ms));
  EXPECT_FALSE(tenure.has_handover_ended(1));
  tenure.note(owned, MonoTime(15s));
  EXPECT_TRUE(tenure.has_handover_ended(1));
}

TEST(ShardTenure, AShardThatComesBackIsNew) {
  ShardTenure tenure(10s);
  tenure.note(shards({1, 2}), MonoTime(0s));
  tenure.note(shards({2}), MonoTime(20s));
  tenure.note(shards({1, 2}), MonoTime(30s));
  EXPECT_FALSE(tenure.has_handover_ended(1));
  EXPECT_TRUE(tenure.has_handover_ended(2)) << "it was never given up";
}

TEST(ShardTenure, AShardThatWasGainedAgainIsNewThoughTheListIsTheSame) {
  ShardTenure tenure(10s);
  const auto owned = shards({1, 2});
  tenure.note(owned, MonoTime(0s));
  tenure.begin_anew(1, MonoTime(20s));
  tenure.note(owned, MonoTime(20s));
  EXPECT_FALSE(tenure.has_handover_ended(1));
  EXPECT_TRUE(tenure.has_handover_ended(2));
}

TEST(GainedShards, AShardThatWasLostInBetweenIsGained) {
  GainedShards gained;
  gained.note({}, {1, 2});
  EXPECT_EQ(gained.take(), (std::set<Shard>{1, 2}));
  gained.note({1, 2}, {2});
  gained.note({2}, {1, 2});
  EXPECT_EQ(gained.take(), std::set<Shard>{1});
  EXPECT_TRUE(gained.take().empty());
}

}  // namespace
}  // namespace tocsin
