// Whether a node finds jobs where it looks for them, by what the databases say about their shards.
#include "node/shard_homes.h"

#include <gtest/gtest.h>

#include "api/backend.h"

namespace tocsin {
namespace {

using Databases = std::vector<ShardsOfDatabase>;

ShardSet shards(std::initializer_list<std::size_t> which) {
  ShardSet set;
  for (const std::size_t shard : which) set.set(shard);
  return set;
}

// 'h' at home, 'm' moved, '?' the home did not tell.
char judge(const std::vector<ShardHome>& homes, const Databases& databases) {
  const Status judged = judge_homes(homes, databases);
  if (judged) return 'h';
  if (judged.error().code == ErrorCode::moved) return 'm';
  EXPECT_EQ(judged.error().field, kInOutbox);
  return '?';
}

TEST(ShardHomes, AShardHasMovedIfAnotherDatabaseHasIt) {
  const Databases databases{{0, shards({1, 2})}, {1, shards({3})}};
  EXPECT_EQ(judge({{1, 0}, {2, 0}, {3, 1}}, databases), 'h');
  EXPECT_EQ(judge({{1, 0}, {3, 0}}, databases), 'm');
  EXPECT_EQ(judge({{1, 1}}, databases), 'm');
}

// Both the old and the new database have all its jobs then.
TEST(ShardHomes, AShardThatLivesNowhereIsLookedForInTheDatabaseOfTheMap) {
  const Databases databases{{0, shards({1, 2})}, {1, shards({3})}};
  EXPECT_EQ(judge({{4, 0}}, databases), 'h');
  EXPECT_EQ(judge({{4, 1}}, databases), 'h');
}

TEST(ShardHomes, ADatabaseThatDoesNotAnswerMayHaveWhatTheHomeHasNot) {
  const Databases databases{{0, shards({1})}, {1, {}}};
  EXPECT_EQ(judge({{1, 0}}, databases), 'h');
  EXPECT_EQ(judge({{2, 0}}, databases), 'm');
  EXPECT_EQ(judge({{2, 1}}, databases), '?');
}

}  // namespace
}  // namespace tocsin
