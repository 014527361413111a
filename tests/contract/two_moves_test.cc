// Moves of different shards from or to one database at a time: they change one list of shards. On PostgreSQL alone: the
// fake's calls do not overlap.
#include <gtest/gtest.h>

#include <future>
#include <vector>

#include "postgres/registry.h"
#include "support/process.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

class TwoMoves : public testing::Test {
 protected:
  bool is_waiting() {
    return eventually([&] {
      return database.number(
                 "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = "
                 "current_database()") > 0;
    });
  }
  std::future<void> begin(const std::string& statement) {
    return std::async(std::launch::async, [this, statement] {
      pqxx::connection connection(database.url());
      pqxx::nontransaction(connection).exec(statement);
    });
  }
  // The second statement begins before the transaction of the first one ends.
  void overlap(const std::string& first, const std::string& second) {
    pqxx::connection connection(database.url());
    pqxx::work tx(connection);
    tx.exec(first);
    auto other = begin(second);
    EXPECT_TRUE(is_waiting());
    tx.commit();
    other.get();
  }
  // The shards whose jobs the constraint accepts.
  std::vector<int> accepted() {
    std::vector<int> shards;
    for (int shard = 0; shard < kShards; ++shard) {
      pqxx::connection connection(database.url());
      pqxx::work tx(connection);
      const std::string text = std::to_string(shard);
      try {
        tx.exec(
            "INSERT INTO tocsin.job_live (job_id, action_time, fire_at, gmt_create, gmt_modified, type_id, shard, "
            "max_attempts, biz_id) SELECT 1024 + " +
            text + ", t, t, t, t, 1, " + text + ", 1, 'k' FROM clock_timestamp() t");
        shards.push_back(shard);
      } catch (const pqxx::sql_error& error) {
        EXPECT_EQ(error.sqlstate(), "TC001") << error.what();
      }
    }
    return shards;
  }
  std::vector<int> listed() {
    std::vector<int> shards;
    for (const auto& row : database.query("SELECT unnest(tocsin.shards_here()) ORDER BY 1"))
      shards.push_back(row[0].as<int>());
    return shards;
  }
  void expect_here(const std::vector<int>& shards) {
    EXPECT_EQ(listed(), shards);
    EXPECT_EQ(accepted(), shards);
  }

  static constexpr int kShards = 16;  // two per table
  TestDatabase database{kShards};
};

TEST_F(TwoMoves, BothShardsThatAreFrozenAtOnceHaveLeft) {
  database.query("SELECT tocsin.set_shards_here('{1,2,3,8}')");
  overlap("SELECT tocsin.freeze_shard(1::smallint)", "SELECT tocsin.freeze_shard(8::smallint)");
  expect_here({2, 3});
}

TEST_F(TwoMoves, TheFirstShardsToLeaveADatabaseLeaveItTogether) {
  overlap("SELECT tocsin.freeze_shard(1::smallint)", "SELECT tocsin.freeze_shard(8::smallint)");
  expect_here({0, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15});
}

TEST_F(TwoMoves, BothShardsThatAreOpenedAtOnceLiveHere) {
  database.query("SELECT tocsin.set_shards_here('{2,3}')");
  overlap("SELECT tocsin.open_shard(1::smallint)", "SELECT tocsin.open_shard(8::smallint)");
  expect_here({1, 2, 3, 8});
}

TEST_F(TwoMoves, AShardIsOpenedWhileAnotherIsFrozen) {
  database.query("SELECT tocsin.set_shards_here('{1,2,3}')");
  overlap("SELECT tocsin.freeze_shard(1::smallint)", "SELECT tocsin.open_shard(8::smallint)");
  expect_here({2, 3, 8});
}

TEST_F(TwoMoves, BothFreezesThatEndAtOnceBringTheirShardsBack) {
  database.query("SELECT tocsin.set_shards_here('{1,2,3,8}')");
  for (const char* shard : {"1", "8"})
    database.query("SELECT tocsin.freeze_shard(" + std::string(shard) + "::smallint)");
  const auto end_freeze = [](const std::string& shard) {
    return "SELECT tocsin.thaw_shard(" + shard + "::smallint); SELECT tocsin.open_shard(" + shard + "::smallint)";
  };
  overlap(end_freeze("1"), "BEGIN; " + end_freeze("8") + "; COMMIT");
  expect_here({1, 2, 3, 8});
}

// The other order would deadlock with a freeze of a neighbour, which has the list and waits for all tables.
TEST_F(TwoMoves, TheEndOfAFreezeWaitsForTheListBeforeItLocksATable) {
  database.query("SELECT tocsin.freeze_shard(1::smallint)");
  pqxx::connection connection(database.url());
  pqxx::work neighbour(connection);
  neighbour.exec("SELECT FROM tocsin.place FOR UPDATE");
  auto thaw = begin("SELECT tocsin.thaw_shard(1::smallint)");
  EXPECT_TRUE(is_waiting());
  EXPECT_NO_THROW(neighbour.exec("LOCK TABLE tocsin.job_live IN ACCESS EXCLUSIVE MODE NOWAIT"));
  neighbour.commit();
  thaw.get();
}

// The constraint of b is to be mended, for it disagrees with the map; and meanwhile a move opens a shard there.
TEST_F(TwoMoves, AMigrationDoesNotUndoAMoveThatEndsMeanwhile) {
  TestDatabase added(kShards);
  Session a(SessionConfig{database.url()}), b(SessionConfig{added.url()});
  const std::vector<GivenDatabase> given{{a, "a", "a"}, {b, "b", "b"}};
  const auto migrate = [&] { return register_databases(given, kShards, [](const std::string&) {}); };
  ASSERT_TRUE(migrate());
  added.query("SELECT tocsin.set_shards_here('{1,2}')");
  pqxx::connection connection(database.url());
  pqxx::work migration(connection);  // another one, which has the lock that migrations take after they have read
  migration.exec("SELECT pg_advisory_xact_lock(hashtextextended('tocsin.migrate', 0))");
  auto done = std::async(std::launch::async, migrate);
  EXPECT_TRUE(is_waiting());
  added.query("SELECT tocsin.open_shard(8::smallint)");
  migration.commit();
  const Status refused = done.get();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::conflict) << refused.error().message;
  EXPECT_EQ(added.query("SELECT tocsin.shards_here()::text")[0][0].as<std::string>(), "{1,2,8}");
}

}  // namespace
}  // namespace tocsin
