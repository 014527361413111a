// MemberStore: heartbeats, the shard map and leaving.
#include <numeric>

#include "support/contract/store_fixture.h"

namespace tocsin {
namespace {

Beat beat_of(NodeId id, std::int64_t known_map = -1) {
  return {id, "node-" + std::to_string(id), "1.2.3", false, {}, known_map};
}

const Member* find_in(const BeatReply& reply, NodeId id) {
  for (const Member& member : reply.members)
    if (member.id == id) return &member;
  return nullptr;
}

TEST_P(StoreContract, AHeartbeatShowsThisNodeAndAllOthersById) {
  EXPECT_EQ(must(db->members().beat(beat_of(7))).members.size(), 1U);
  const BeatReply reply = must(db->other_members().beat(beat_of(3)));
  ASSERT_EQ(reply.members.size(), 2U);
  EXPECT_EQ(reply.members[0].id, 3);
  EXPECT_EQ(reply.members[1].id, 7);
  EXPECT_EQ(reply.members[1].name, "node-7");
  EXPECT_EQ(reply.members[1].version, "1.2.3");
  EXPECT_FALSE(reply.members[1].is_draining);
  EXPECT_TRUE(reply.members[1].is_connected);
  EXPECT_LE(reply.asked, reply.answered);
}

TEST_P(StoreContract, OnlyAHeartbeatAdvancesTheTimeOfItsRow) {
  const WallTime first = find_in(must(db->members().beat(beat_of(1))), 1)->heartbeat_at;
  const BeatReply seen = must(db->other_members().beat(beat_of(2)));
  EXPECT_EQ(find_in(seen, 1)->heartbeat_at, first);
  let_pass(std::chrono::milliseconds(2));
  EXPECT_EQ(find_in(must(db->other_members().beat(beat_of(2))), 1)->heartbeat_at, first);
  EXPECT_GE(find_in(must(db->other_members().beat(beat_of(2))), 1)->heartbeat_age, std::chrono::milliseconds(2));
  EXPECT_GT(find_in(must(db->members().beat(beat_of(1))), 1)->heartbeat_at, first);
  EXPECT_EQ(must(db->other_members().beat(beat_of(2))).members.size(), 2U) << "one row per node";
}

TEST_P(StoreContract, AHeartbeatReportsANewConnection) {
  const auto connection = must(db->members().beat(beat_of(1))).connection;
  EXPECT_EQ(must(db->members().beat(beat_of(1))).connection, connection);
  db->end_members_session(1);
  EXPECT_NE(must(db->members().beat(beat_of(1))).connection, connection);
}

TEST_P(StoreContract, AgesOfTheLastScansAreStoredByDatabaseAndGrow) {
  Beat told = beat_of(1);
  EXPECT_TRUE(find_in(must(db->members().beat(told)), 1)->scanned.empty());
  told.scanned = {{0, std::chrono::seconds(3)}, {2, std::nullopt}, {1, std::chrono::milliseconds(0)}};
  static_cast<void>(must(db->members().beat(told)));
  let_pass(std::chrono::milliseconds(1));
  const auto scanned = find_in(must(db->other_members().beat(beat_of(2))), 1)->scanned;
  ASSERT_EQ(scanned.size(), 3U);
  for (const auto& [i, database_id] : {std::pair<std::size_t, DatabaseId>(0, 0), {1, 2}, {2, 1}})
    EXPECT_EQ(scanned[i].database_id, database_id);
  ASSERT_TRUE(scanned[0].age && scanned[2].age);
  EXPECT_GT(*scanned[0].age, std::chrono::seconds(3));
  EXPECT_LT(*scanned[0].age, std::chrono::hours(1));
  EXPECT_FALSE(scanned[1].age);
  EXPECT_LT(*scanned[2].age, *scanned[0].age);
}

TEST_P(StoreContract, DrainingIsSeenAndLeavingRemovesTheRow) {
  Beat leaving = beat_of(1);
  static_cast<void>(must(db->members().beat(beat_of(1))));
  leaving.is_draining = true;
  static_cast<void>(must(db->members().beat(leaving)));
  EXPECT_TRUE(find_in(must(db->other_members().beat(beat_of(2))), 1)->is_draining);
  static_cast<void>(must(db->members().leave(1)));
  EXPECT_EQ(find_in(must(db->other_members().beat(beat_of(2))), 1), nullptr);
  static_cast<void>(must(db->members().leave(1)));
  EXPECT_EQ(must(db->other_members().beat(beat_of(2))).members.size(), 1U);
}

TEST_P(StoreContract, TheEndOfTheSessionIsSeenUntilTheNextHeartbeat) {
  static_cast<void>(must(db->members().beat(beat_of(1))));
  db->end_members_session(1);
  EXPECT_FALSE(find_in(must(db->other_members().beat(beat_of(2))), 1)->is_connected);
  EXPECT_TRUE(find_in(must(db->members().beat(beat_of(1))), 1)->is_connected);
  EXPECT_TRUE(find_in(must(db->other_members().beat(beat_of(2))), 1)->is_connected);
}

TEST_P(StoreContract, TheMapIsEmptyAtFirstAndReturnedOnlyWhenItIsNewer) {
  const BeatReply first = must(db->members().beat(beat_of(1)));
  ASSERT_TRUE(first.map);
  EXPECT_EQ(first.map->version, 0);
  EXPECT_TRUE(first.map->owners.empty());
  EXPECT_FALSE(must(db->members().beat(beat_of(1, 0))).map);

  ASSERT_TRUE(must(db->members().replace_map(0, {1, 2, 0, 5'000'000'000'000})));
  const BeatReply second = must(db->other_members().beat(beat_of(2, 0)));
  ASSERT_TRUE(second.map);
  EXPECT_EQ(second.map->version, 1);
  EXPECT_EQ(second.map->owners, (std::vector<NodeId>{1, 2, 0, 5'000'000'000'000}));
}

TEST_P(StoreContract, OfTwoProposalsForOneVersionOneWins) {
  EXPECT_TRUE(must(db->members().replace_map(0, {1, 1})));
  EXPECT_FALSE(must(db->other_members().replace_map(0, {2, 2})));
  EXPECT_EQ(must(db->members().beat(beat_of(1))).map->owners, (std::vector<NodeId>{1, 1}));
  EXPECT_TRUE(must(db->other_members().replace_map(1, {2, 2})));
  EXPECT_FALSE(must(db->members().replace_map(5, {3, 3}))) << "a version that never was";
  const BeatReply reply = must(db->members().beat(beat_of(1)));
  EXPECT_EQ(reply.map->version, 2);
  EXPECT_EQ(reply.map->owners, (std::vector<NodeId>{2, 2}));
}

TEST_P(StoreContract, ANewMapOfOwnersLeavesShardsInTheirDatabases) {
  db->set_database_ids({0, 1, 1, 5});
  const ShardMap placed = *must(db->members().beat(beat_of(1))).map;
  EXPECT_EQ(placed.database_ids, (std::vector<DatabaseId>{0, 1, 1, 5}));
  ASSERT_TRUE(must(db->members().replace_map(placed.version, {1, 1, 1, 1})));
  const ShardMap owned = *must(db->members().beat(beat_of(1, placed.version))).map;
  EXPECT_EQ(owned.owners.size(), 4U);
  EXPECT_EQ(owned.database_ids, placed.database_ids);
  EXPECT_EQ(owned.database_of(3), 5);
  EXPECT_EQ(owned.database_of(4), 0) << "what is not said lives in the control database";
}

TEST_P(StoreContract, DueSoonCountsPendingJobsByShard) {
  const JobId now = create(due("a")), far = create(later("b"));
  const JobId running = create(due("c"));
  claim_one(running);
  std::vector<Shard> all;
  for (int shard = db->shards() - 1; shard >= 0; --shard) all.push_back(static_cast<Shard>(shard));
  const auto soon = must(db->reports().due_soon(all, std::chrono::seconds(5), 10, true));
  ASSERT_EQ(soon.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(soon[i], all[i] == shard_of(now) ? 1 : 0) << all[i];
  const auto ever = must(db->reports().due_soon(all, std::chrono::hours(2), 10, true));
  EXPECT_EQ(std::accumulate(ever.begin(), ever.end(), std::int64_t{0}), 2);
  const auto ahead = must(db->reports().due_soon(all, std::chrono::hours(2), 10, false));
  EXPECT_EQ(std::accumulate(ahead.begin(), ahead.end(), std::int64_t{0}), 1) << "without the overdue one";
  EXPECT_EQ(must(db->reports().due_soon(std::vector<Shard>{shard_of(far)}, std::chrono::hours(2), 0, true))[0], 0);
}

}  // namespace
}  // namespace tocsin
