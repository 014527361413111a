// MoveStore: who drives a move, and what its verbs leave behind, on PostgreSQL and in memory. What the store in memory
// does not have (sessions, leases of a frozen shard, nodes) is tested on PostgreSQL alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <ostream>

#include "postgres/pg_client_store.h"
#include "postgres/pg_move_store.h"
#include "support/fake_moves.h"
#include "support/manual_clock.h"
#include "support/must.h"
#include "support/no_faults.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

using State = ShardMove::State;

constexpr int kMoveShards = 8;
constexpr Shard kMoved = 3;

// The control database, where all shards live.
class MoveFixture {
 public:
  virtual ~MoveFixture() = default;
  virtual MoveStore& store() = 0;
  virtual void let_lease_end() = 0;  // as time does
  virtual bool lives_here() = 0;     // the shard kMoved
  virtual void lose_move() = 0;      // a failover does
  virtual void place_all_in(DatabaseId database_id) = 0;
  virtual DatabaseId place() = 0;  // of kMoved, by the shard map
  virtual void create(const std::string& biz_id) = 0;
  virtual std::int64_t rows() = 0;     // of kMoved
  virtual std::int64_t counted() = 0;  // jobs of all shards
  virtual void open_writer() = 0;      // a transaction that has written
  virtual void close_writer() = 0;
};

class PostgresMoves final : public MoveFixture {
 public:
  PostgresMoves() {
    place_all_in(0);
    database_.add_noop_type();
  }
  MoveStore& store() override { return store_; }
  void let_lease_end() override {
    database_.query("UPDATE tocsin.move SET thaw_at = clock_timestamp() - interval '1 ms'");
  }
  bool lives_here() override { return database_.query("SELECT tocsin.lives_here(3::smallint)")[0][0].as<bool>(); }
  void lose_move() override { database_.query("DELETE FROM tocsin.move"); }
  void place_all_in(DatabaseId database_id) override { database_.place_all_shards_in(database_id); }
  DatabaseId place() override {
    return static_cast<DatabaseId>(database_.number("SELECT places[4] FROM tocsin.shard_map"));
  }
  void create(const std::string& biz_id) override {
    database_.query("SELECT tocsin.create_job('noop', '" + biz_id + "', now() + interval '1 hour')");
  }
  std::int64_t rows() override { return database_.number("SELECT count(*) FROM tocsin.job_live WHERE shard = 3"); }
  std::int64_t counted() override {
    return database_.number("SELECT coalesce(sum(n), 0)::bigint FROM tocsin.job_count_delta");
  }
  void open_writer() override {
    writer_ = std::make_unique<pqxx::work>(other_);
    writer_->exec("LOCK TABLE tocsin.job_live IN ROW EXCLUSIVE MODE");
  }
  void close_writer() override { writer_.reset(); }

 private:
  TestDatabase database_{kMoveShards};
  Session session_{SessionConfig{database_.url(), "tocsin move of shard 3"}};
  PgMoveStore store_{session_};
  pqxx::connection other_{database_.url()};
  std::unique_ptr<pqxx::work> writer_;
};

class MovesInMemory final : public MoveFixture {
 public:
  MovesInMemory() {
    moves_.emplace_back(database_, moves_);
    place_all_in(0);
    for (Shard shard = 0; shard < kMoveShards; ++shard) moves().settle_in(shard);
    session_ = fake_move_end(moves(), kMoved, clock_, faults_);
  }
  MoveStore& store() override { return session_->store(); }
  void let_lease_end() override { now_ += kThawLease + std::chrono::milliseconds(1); }
  bool lives_here() override { return moves().lives_here(kMoved); }
  void lose_move() override { moves().lose(kMoved); }
  void place_all_in(DatabaseId database_id) override {
    database_.members.set_database_ids(std::vector<DatabaseId>(kMoveShards, database_id));
  }
  DatabaseId place() override { return database_.members.map().database_of(kMoved); }
  void create(const std::string& biz_id) override {
    NewJob job;
    job.type_id = 1;
    job.biz_id = biz_id;
    job.max_attempts = 3;
    job.when.at = now_ + std::chrono::hours(1);
    must(database_.create({job}, {}, now_));
  }
  std::int64_t rows() override {
    return std::ranges::count_if(database_.live(), [](const auto& row) { return shard_of(row.first) == kMoved; });
  }
  std::int64_t counted() override { return moves().counted(); }
  void open_writer() override { writer_.emplace(database_, now_); }
  void close_writer() override { writer_.reset(); }

 private:
  FakeMoves& moves() { return moves_.front(); }

  WallTime now_{std::chrono::sys_days(std::chrono::year(2026) / 3 / 1)};
  ManualClock clock_;
  NoFaults faults_;
  FakeDatabase database_{[this] { return now_ += std::chrono::microseconds(10); }, kMoveShards};
  FakeMoveDatabases moves_;
  std::unique_ptr<MoveSession> session_;
  std::optional<FakeDatabase::Writer> writer_;
};

struct Kind {
  const char* name;
  std::unique_ptr<MoveFixture> (*make)();
};
std::ostream& operator<<(std::ostream& out, const Kind& kind) { return out << kind.name; }

class MoveContract : public testing::TestWithParam<Kind> {
 protected:
  ShardMove taken() { return must(store.take(kMoved, DatabaseId{1}, {})).value(); }
  static void expect_taken_over(const Status& status) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::superseded) << status.error().message;
  }

  const std::unique_ptr<MoveFixture> db = GetParam().make();
  MoveStore& store = db->store();
};
INSTANTIATE_TEST_SUITE_P(Fake, MoveContract,
                         testing::Values(Kind{"fake", [] { return std::unique_ptr<MoveFixture>(new MovesInMemory); }}));
INSTANTIATE_TEST_SUITE_P(Postgres, MoveContract,
                         testing::Values(Kind{"postgres",
                                              [] { return std::unique_ptr<MoveFixture>(new PostgresMoves); }}));

class MoveStoreTest : public testing::Test {
 protected:
  MoveStoreTest() { database.place_all_shards_in(0); }
  ShardMove taken() { return must(store.take(kMoved, DatabaseId{1}, {})).value(); }

  TestDatabase database{kMoveShards};
  Session session{SessionConfig{database.url(), "tocsin move of shard 3"}};
  PgMoveStore store{session};
};

TEST_P(MoveContract, TheLatestDriverOwnsTheMove) {
  ShardMove first = taken();
  EXPECT_EQ(first.state, State::copying);
  EXPECT_EQ(first.source, 0);
  EXPECT_EQ(first.target, 1);
  EXPECT_FALSE(first.may_be_frozen);
  EXPECT_EQ(must(store.take(kMoved, DatabaseId{1}, first.driver))->driver, first.driver) << "it keeps its number";
  ShardMove second = taken();
  EXPECT_GT(second.driver, first.driver);
  expect_taken_over(store.set_state(first, State::switching));
  expect_taken_over(store.freeze(first));
  expect_taken_over(store.flip(first));
  expect_taken_over(store.end(first));
  EXPECT_TRUE(db->lives_here());
  EXPECT_FALSE(store.take(kMoved, DatabaseId{1}, first.driver)) << "another command has it";
  EXPECT_FALSE(store.take(kMoved, DatabaseId{2}, {})) << "on its way elsewhere";
  EXPECT_EQ(must(store.list()).front().driver, second.driver) << "and a refusal took nothing";
  must(store.end(second));
  EXPECT_FALSE(must(store.take(kMoved, {}, {}))) << "nothing is under way";
  EXPECT_GT(taken().driver, second.driver) << "of the next move: an earlier driver may still write";
  must(store.end(must(store.list()).front()));
  EXPECT_FALSE(must(store.take(kMoved, DatabaseId{0}, {}))) << "it is there already";
}

TEST_P(MoveContract, AMoveLostByTheControlDatabaseFollowsTheShardMap) {
  EXPECT_FALSE(must(store.noted(kMoved)));
  const ShardMove lost{3, DatabaseId{0}, DatabaseId{1}, 7, State::copying, false, false};
  must(store.recall(lost));
  const ShardMove recalled = must(store.take(kMoved, {}, {})).value();
  EXPECT_GT(recalled.driver, lost.driver);
  EXPECT_EQ(recalled.state, State::copying);
  EXPECT_TRUE(recalled.may_be_frozen) << "its driver must find out";
  must(store.recall(lost));
  EXPECT_EQ(must(store.noted(kMoved))->driver, recalled.driver) << "once";
  must(store.end(recalled));
  db->place_all_in(1);
  must(store.recall(lost));
  EXPECT_EQ(must(store.list()).front().state, State::switched);
  db->lose_move();
  db->place_all_in(2);
  EXPECT_EQ(store.recall(lost).error().code, ErrorCode::invalid);
}

TEST_P(MoveContract, AFrozenShardRefusesChangesUntilItIsThawed) {
  ShardMove move = taken();
  must(store.set_state(move, State::switching));
  EXPECT_TRUE(move.may_be_frozen);
  for (int i = 0; i < 2; ++i) must(store.freeze(move));  // may be repeated, like everything
  EXPECT_FALSE(db->lives_here());
  for (int i = 0; i < 2; ++i) must(store.unfreeze(move));
  EXPECT_TRUE(db->lives_here());
  must(store.set_writable(move));
  EXPECT_FALSE(move.may_be_frozen);
  EXPECT_FALSE(must(store.list()).front().may_be_frozen);
}

TEST_F(MoveStoreTest, AFrozenShardRefusesItsOwnLeasesOnly) {
  database.add_noop_type();
  std::vector<Lease> leases, still;
  std::vector<FinishRequest> requests;
  for (int i = 0; i < 60; ++i) {
    const JobId id =
        database.number("SELECT tocsin.create_job('noop', 'k-" + std::to_string(i) + "', now() + interval '1 hour')");
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

TEST_P(MoveContract, AnOpenWriterIsAConflictAndLeavesTheShardAsItWas) {
  const auto expect_conflict = [](const Status& status) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::conflict) << status.error().message;
  };
  ShardMove move = taken();
  must(store.set_state(move, State::switching));
  db->open_writer();
  expect_conflict(store.freeze(move));
  EXPECT_TRUE(db->lives_here());
  db->close_writer();
  must(store.freeze(move));
  db->open_writer();
  expect_conflict(store.unfreeze(move));
  expect_conflict(store.thaw(move));
  expect_conflict(store.can_open(move));
  expect_conflict(store.open(move));
  EXPECT_FALSE(db->lives_here());
  db->close_writer();
  must(store.can_open(move));
  must(store.unfreeze(move));
  EXPECT_TRUE(db->lives_here());
}

TEST_P(MoveContract, AnyNodeEndsTheFreezeOfASilentDriverWhoseFlipThenFails) {
  ShardMove driver = taken();
  must(store.set_state(driver, State::switching));
  must(store.freeze(driver));
  ShardMove seen = must(store.list()).front();
  EXPECT_FALSE(seen.is_overdue);
  EXPECT_FALSE(must(store.take_over(seen))) << "it has time";
  must(store.keep(driver));
  db->let_lease_end();
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
  EXPECT_TRUE(db->lives_here());
  EXPECT_EQ(db->place(), 0);
  // Its command may go on, under a new number.
  const ShardMove again = must(store.take(kMoved, DatabaseId{1}, driver.driver)).value();
  EXPECT_GT(again.driver, seen.driver);
  expect_taken_over(store.unfreeze(seen));
}

TEST_P(MoveContract, ATakeoverOfAnOverdueMoveDoesNotUndoItsFlip) {
  ShardMove driver = taken();
  must(store.set_state(driver, State::switching));
  db->let_lease_end();
  ShardMove seen = must(store.list()).front();
  const auto version = must(store.map_version());
  must(store.flip(driver));
  EXPECT_FALSE(must(store.take_over(seen)));
  EXPECT_EQ(db->place(), 1);
  EXPECT_EQ(must(store.map_version()), version + 1);
  expect_taken_over(store.flip(driver));
  db->let_lease_end();
  seen = must(store.list()).front();
  EXPECT_TRUE(must(store.take_over(seen)));
  EXPECT_EQ(seen.state, State::switched) << "to be opened in the target";
}

TEST_P(MoveContract, CountsAreTakenOnceAndAddedOnce) {
  for (int i = 0; i < 40; ++i) db->create("k-" + std::to_string(i));
  const auto here = db->rows(), all = db->counted();
  ASSERT_GT(here, 0);
  const ShardMove move = taken();
  const std::string counts = must(store.take_counts(move));
  EXPECT_EQ(must(store.take_counts(move)), counts);
  EXPECT_EQ(db->counted(), all - here);
  for (int i = 0; i < 2; ++i) must(store.add_counts(move, counts));
  EXPECT_EQ(db->counted(), all);
  must(store.empty_counts(move));
  EXPECT_NE(must(store.take_counts(move)), counts) << "the target has forgotten the move, and it is driven on";
  EXPECT_EQ(db->counted(), all);
}

TEST_P(MoveContract, RowsAreDeletedOnlyWhereTheShardDoesNotLive) {
  for (int i = 0; i < 40; ++i) db->create("k-" + std::to_string(i));
  const auto here = db->rows();
  ASSERT_GT(here, 0);
  const ShardMove move = taken();
  const auto tables = must(store.tables(kMoved));
  for (const std::string& table : tables) EXPECT_FALSE(store.delete_rows(move, table));
  EXPECT_EQ(db->rows(), here);
  must(store.freeze(move));
  std::int64_t deleted = 0;
  for (const std::string& table : tables) deleted += must(store.delete_rows(move, table));
  EXPECT_EQ(deleted, here);
  EXPECT_EQ(db->rows(), 0);
}

TEST_F(MoveStoreTest, NodesReportTheirDatabasesAndTheirMapVersion) {
  const auto node = [&](int id, const char* name, const char* places, const char* map, const char* age,
                        const std::string& state = "active") {
    database.query(
        "INSERT INTO tocsin.node (node_id, name, state, version, heartbeat_at, places, map_version) VALUES (" +
        std::to_string(id) + ", '" + name + "', '" + state + "', '1', clock_timestamp() - interval '" + age + "', " +
        places + ", " + map + ")");
  };
  node(1, "both", "'{0,1}'", "2", "1 s");
  node(2, "control-only", "'{0}'", "1", "1 s");
  node(3, "old", "NULL", "NULL", "1 s");
  node(4, "dead", "'{0}'", "1", "1 hour");
  node(5, "ending", "'{0}'", "1", "1 s", "draining");
  EXPECT_EQ(must(store.nodes_without(1)), (std::vector<std::string>{"control-only", "old"}));
  EXPECT_EQ(must(store.nodes_without(0)), (std::vector<std::string>{"old"}));
  EXPECT_EQ(must(store.nodes_behind(2)), (std::vector<std::string>{"control-only", "ending", "old"}));
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
