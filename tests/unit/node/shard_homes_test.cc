// Whether a node finds jobs where it looks for them, by what the databases say about their shards.
#include "node/shard_homes.h"

#include <gtest/gtest.h>

#include "api/backend.h"

namespace tocsin {
namespace {

ShardsHere living(std::initializer_list<std::size_t> shards, std::map<Shard, DatabaseId> partner = {}) {
  ShardsHere here{{}, std::move(partner)};
  for (const std::size_t shard : shards) here.living.set(shard);
  return here;
}

// 'h' at home, 'm' moved, '?' the home did not tell.
char judge(const std::vector<ShardHome>& homes, const ToldShards& told) {
  const Status judged = judge_homes(homes, told);
  if (judged) return 'h';
  if (judged.error().code == ErrorCode::moved) return 'm';
  EXPECT_EQ(judged.error().field, kInOutbox);
  return '?';
}

TEST(ShardHomes, AShardThatDoesNotLiveAtHomeHasMoved) {
  const ToldShards told{{0, living({1, 2})}, {1, living({3})}};
  EXPECT_EQ(judge({{1, 0}, {2, 0}, {3, 1}}, told), 'h');
  EXPECT_EQ(judge({{1, 0}, {3, 0}}, told), 'm');
  EXPECT_EQ(judge({{4, 0}}, told), 'm') << "maybe into a database that was not asked";
}

// Both databases of the move have all its jobs then.
TEST(ShardHomes, AMovingShardThatLivesNowhereIsLookedForAtHome) {
  const ToldShards frozen{{0, living({1}, {{4, 1}})}, {1, living({}, {{4, 0}})}};
  EXPECT_EQ(judge({{4, 0}}, frozen), 'h');
  EXPECT_EQ(judge({{4, 1}}, frozen), 'h');
  const ToldShards opened{{0, living({1}, {{4, 1}})}, {1, living({4}, {{4, 0}})}};
  EXPECT_EQ(judge({{4, 0}}, opened), 'm');
  EXPECT_EQ(judge({{4, 1}}, opened), 'h');
}

TEST(ShardHomes, WhoDoesNotAnswerMayHaveTheShard) {
  const ToldShards told{{0, living({1}, {{4, 1}})}, {1, std::nullopt}};
  EXPECT_EQ(judge({{1, 0}}, told), 'h');
  EXPECT_EQ(judge({{4, 0}}, told), 'm');
  EXPECT_EQ(judge({{2, 1}}, told), '?');
}

}  // namespace
}  // namespace tocsin
