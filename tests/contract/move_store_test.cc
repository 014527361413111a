// PgMoveStore: who drives a move, and what its verbs leave behind. On PostgreSQL alone: a fake would have no fence.
#include <gtest/gtest.h>

#include "postgres/pg_client_store.h"
#include "postgres/pg_move_store.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

using State = ShardMove::State;

class MoveStoreTest : public testing::Test {
 protected:
  MoveStoreTest() {
    database.query("UPDATE tocsin.shard_map SET version = 1, places = array_fill(0::smallint, ARRAY[8])");
  }

  template <class T>
  static T must(Result<T> result) {
    if (!result) throw std::runtime_error(result.error().message);
    return std::move(*result);
  }
  ShardMove taken() { return must(store.take(3, DatabaseId{1}, {})).value(); }
  // As time does.
  void let_lease_end() { database.query("UPDATE tocsin.move SET thaw_at = clock_timestamp() - interval '1 ms'"); }
  bool lives_here() { return database.query("SELECT tocsin.lives_here(3::smallint)")[0][0].as<bool>(); }
  void expect_taken_over(const Status& status) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::superseded) << status.error().message;
  }

  TestDatabase database{8};
  Session session{SessionConfig{database.url(), "tocsin move of shard 3"}};
  PgMoveStore store{session};
};

TEST_F(MoveStoreTest, TheLatestDriverOwnsTheMove) {
  ShardMove first = taken();
  EXPECT_EQ(first.state, State::copying);
  EXPECT_EQ(first.source, 0);
  EXPECT_EQ(first.target, 1);
  EXPECT_FALSE(first.may_be_frozen);
  EXPECT_EQ(must(store.take(3, DatabaseId{1}, first.driver))->driver, first.driver) << "it keeps its number";
  ShardMove second = taken();
  EXPECT_GT(second.driver, first.driver);
  expect_taken_over(store.set_state(first, State::switching));
  expect_taken_over(store.freeze(first));
  expect_taken_over(store.flip(first));
  expect_taken_over(store.end(first));
  EXPECT_TRUE(lives_here());
  EXPECT_FALSE(store.take(3, DatabaseId{1}, first.driver)) << "another command has it";
  EXPECT_FALSE(store.take(3, DatabaseId{2}, {})) << "on its way elsewhere";
  EXPECT_EQ(must(store.list()).front().driver, second.driver) << "and a refusal took nothing";
  must(store.end(second));
  EXPECT_FALSE(must(store.take(3, {}, {}))) << "nothing is under way";
  EXPECT_GT(taken().driver, second.driver) << "of the next move: an earlier driver may still write";
  must(store.end(must(store.list()).front()));
  EXPECT_FALSE(must(store.take(3, DatabaseId{0}, {}))) << "it is there already";
}

TEST_F(MoveStoreTest, AMoveLostByTheControlDatabaseFollowsTheShardMap) {
  EXPECT_FALSE(must(store.noted(3)));
  const ShardMove lost{3, DatabaseId{0}, DatabaseId{1}, 7, State::copying, false, false};
  must(store.recall(lost));
  const ShardMove recalled = must(store.take(3, {}, {})).value();
  EXPECT_GT(recalled.driver, lost.driver);
  EXPECT_EQ(recalled.state, State::copying);
  EXPECT_TRUE(recalled.may_be_frozen) << "its driver must find out";
  must(store.recall(lost));
  EXPECT_EQ(must(store.noted(3))->driver, recalled.driver) << "once";
  must(store.end(recalled));
  database.query("UPDATE tocsin.shard_map SET places = array_fill(1::smallint, ARRAY[8])");
  must(store.recall(lost));
  EXPECT_EQ(must(store.list()).front().state, State::switched);
  database.query("DELETE FROM tocsin.move");
  database.query("UPDATE tocsin.shard_map SET places = array_fill(2::smallint, ARRAY[8])");
  EXPECT_EQ(store.recall(lost).error().code, ErrorCode::invalid);
}

TEST_F(MoveStoreTest, AFrozenShardRefusesChangesUntilItIsThawed) {
  ShardMove move = taken();
  must(store.set_state(move, State::switching));
  EXPECT_TRUE(move.may_be_frozen);
  for (int i = 0; i < 2; ++i) must(store.freeze(move));  // may be repeated, like everything
  EXPECT_FALSE(lives_here());
  for (int i = 0; i < 2; ++i) must(store.unfreeze(move));
  EXPECT_TRUE(lives_here());
  must(store.set_writable(move));
  EXPECT_FALSE(move.may_be_frozen);
  EXPECT_FALSE(must(store.list()).front().may_be_frozen);
}

TEST_F(MoveStoreTest, AFrozenShardRefusesItsOwnLeasesOnly) {
  database.query(
      "INSERT INTO tocsin.biz_type (name, handler, ttr_ms, max_attempts, backoff, catch_up) VALUES ('t', '{}', 1000, "
      "3, '{}', '{}')");
  std::vector<Lease> leases, still;
  std::vector<FinishRequest> requests;
  for (int i = 0; i < 60; ++i) {
    const JobId id =
        database.number("SELECT tocsin.create_job('t', 'k-" + std::to_string(i) + "', now() + interval '1 hour')");
    leases.push_back({id, 7});
    requests.push_back({id, 7, FinishRequest::Kind::done, {}, ""});
    if (shard_of(id) == 3) still.push_back(leases.back());
  }
  ASSERT_GE(still.size(), 2U);
  database.query(
      "UPDATE tocsin.job_live SET status = 1, attempts = 1, claim_token = 7, node = 'n', started_at = now()");
  ShardMove move = taken();
  must(store.set_state(move, State::switching));
  must(store.freeze(move));

  Session other(SessionConfig{database.url(), "tocsin test"});
  PgClientStore client_store(other, 8);
  const auto for_two_hours = [](const std::vector<Lease>& some) {
    std::vector<Extension> extensions;
    for (const Lease& lease : some) extensions.push_back({lease, std::chrono::hours(2)});
    return extensions;
  };
  const auto extended = must(client_store.extend(for_two_hours(leases)));
  for (std::size_t i = 0; i < leases.size(); ++i)
    EXPECT_EQ(extended[i].kind, shard_of(leases[i].job_id) == 3 ? LeaseReply::busy : LeaseReply::applied) << i;
  for (const LeaseResult& reply : must(client_store.extend(for_two_hours(still))))
    EXPECT_EQ(reply.kind, LeaseReply::busy);
  const auto finished = must(client_store.finish_leased(requests, "n"));
  for (std::size_t i = 0; i < leases.size(); ++i)
    EXPECT_EQ(finished[i].kind, shard_of(leases[i].job_id) == 3 ? LeaseReply::busy : LeaseReply::applied) << i;
  must(store.unfreeze(move));
  for (const LeaseResult& reply : must(client_store.extend(for_two_hours(still))))
    EXPECT_EQ(reply.kind, LeaseReply::applied);
}

TEST_F(MoveStoreTest, AnOpenWriterIsAConflictAndLeavesTheShardAsItWas) {
  ShardMove move = taken();
  pqxx::connection other(database.url());
  pqxx::work writer(other);
  writer.exec("LOCK TABLE tocsin.job_live IN ROW EXCLUSIVE MODE");
  const Status frozen = store.freeze(move);
  ASSERT_FALSE(frozen);
  EXPECT_EQ(frozen.error().code, ErrorCode::conflict);
  EXPECT_TRUE(lives_here());
}

TEST_F(MoveStoreTest, AnyNodeEndsTheFreezeOfASilentDriverWhoseFlipThenFails) {
  ShardMove driver = taken();
  must(store.set_state(driver, State::switching));
  must(store.freeze(driver));
  ShardMove seen = must(store.list()).front();
  EXPECT_FALSE(seen.is_overdue);
  EXPECT_FALSE(must(store.take_over(seen))) << "it has time";
  must(store.keep(driver));
  let_lease_end();
  seen = must(store.list()).front();
  EXPECT_TRUE(seen.is_overdue);
  ShardMove late = seen;
  EXPECT_TRUE(must(store.take_over(seen)));
  EXPECT_EQ(seen.state, State::copying);
  EXPECT_FALSE(must(store.take_over(late))) << "one is enough";
  expect_taken_over(store.flip(driver));
  expect_taken_over(store.freeze(driver));
  must(store.unfreeze(seen));
  must(store.set_writable(seen));
  EXPECT_TRUE(lives_here());
  EXPECT_EQ(database.number("SELECT version FROM tocsin.shard_map"), 1);
  // Its command may go on, under a new number.
  const ShardMove again = must(store.take(3, DatabaseId{1}, driver.driver)).value();
  EXPECT_GT(again.driver, seen.driver);
  expect_taken_over(store.unfreeze(seen));
}

TEST_F(MoveStoreTest, ATakeoverOfAnOverdueMoveDoesNotUndoItsFlip) {
  ShardMove driver = taken();
  must(store.set_state(driver, State::switching));
  let_lease_end();
  ShardMove seen = must(store.list()).front();
  must(store.flip(driver));
  EXPECT_FALSE(must(store.take_over(seen)));
  EXPECT_EQ(database.number("SELECT places[4] FROM tocsin.shard_map"), 1);
  EXPECT_EQ(must(store.map_version()), 2);
  expect_taken_over(store.flip(driver));
  let_lease_end();
  seen = must(store.list()).front();
  EXPECT_TRUE(must(store.take_over(seen)));
  EXPECT_EQ(seen.state, State::switched) << "to be opened in the target";
}

TEST_F(MoveStoreTest, CountsAreTakenOnceAndAddedOnce) {
  database.query(
      "INSERT INTO tocsin.biz_type (name, handler, ttr_ms, max_attempts, backoff, catch_up) VALUES ('t', '{}', 1000, "
      "3, "
      "'{}', '{}')");
  for (int i = 0; i < 40; ++i)
    database.query("SELECT tocsin.create_job('t', 'k-" + std::to_string(i) + "', now() + interval '1 hour')");
  const auto here = database.number("SELECT count(*) FROM tocsin.job_live WHERE shard = 3");
  ASSERT_GT(here, 0);
  const auto counted = [&] {
    return database.number("SELECT coalesce(sum(n), 0)::bigint FROM tocsin.job_count_delta");
  };
  const auto all = counted();
  const ShardMove move = taken();
  const std::string counts = must(store.take_counts(move));
  EXPECT_EQ(must(store.take_counts(move)), counts);
  EXPECT_EQ(counted(), all - here);
  for (int i = 0; i < 2; ++i) must(store.add_counts(move, counts));
  EXPECT_EQ(counted(), all);
  must(store.empty_counts(move));
  EXPECT_EQ(must(store.take_counts(move)), "[]") << "the target has forgotten the move, and it is driven on";
}

TEST_F(MoveStoreTest, RowsAreDeletedOnlyWhereTheShardDoesNotLive) {
  const ShardMove move = taken();
  const auto tables = must(store.tables(3));
  EXPECT_EQ(tables.front(), "tocsin.job_live_0003");
  EXPECT_FALSE(store.delete_rows(move, tables.front()));
  must(store.freeze(move));
  EXPECT_EQ(must(store.delete_rows(move, tables.front())), 0);
}

TEST_F(MoveStoreTest, NodesReportTheirDatabasesAndTheirMapVersion) {
  const auto node = [&](int id, const char* name, const char* places, const char* map, const char* age) {
    database.query(
        "INSERT INTO tocsin.node (node_id, name, state, version, heartbeat_at, places, map_version) VALUES (" +
        std::to_string(id) + ", '" + name + "', 'active', '1', clock_timestamp() - interval '" + age + "', " + places +
        ", " + map + ")");
  };
  node(1, "both", "'{0,1}'", "2", "1 s");
  node(2, "control-only", "'{0}'", "1", "1 s");
  node(3, "old", "NULL", "NULL", "1 s");
  node(4, "dead", "'{0}'", "1", "1 hour");
  EXPECT_EQ(must(store.nodes_without(1)), (std::vector<std::string>{"control-only", "old"}));
  EXPECT_EQ(must(store.nodes_without(0)), (std::vector<std::string>{"old"}));
  EXPECT_EQ(must(store.nodes_behind(2)), (std::vector<std::string>{"control-only", "old"}));
  EXPECT_EQ(must(store.nodes_behind(1)), (std::vector<std::string>{"old"}));
}

TEST_F(MoveStoreTest, OnlySessionsOfTheEarlierCommandAreEnded) {
  Session before{SessionConfig{database.url(), "tocsin move of shard 3"}};
  Session other{SessionConfig{database.url(), "tocsin move of shard 4"}};
  must(PgMoveStore(before).list());
  must(PgMoveStore(other).list());
  must(store.end_others());
  EXPECT_EQ(database.number("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
                            "application_name LIKE 'tocsin move of%'"),
            2);
}

}  // namespace
}  // namespace tocsin
