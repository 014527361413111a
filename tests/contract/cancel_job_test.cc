// tocsin.cancel_job against those who move the job at the same moment. On PostgreSQL alone: it is its function.
#include <gtest/gtest.h>

#include <future>

#include "support/process.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

TEST(CancelJob, FindsAJobThatIsRevivedMeanwhile) {
  TestDatabase database;
  const std::string columns = "job_id, action_time, fire_at, gmt_create, type_id, shard, max_attempts, biz_id";
  database.query("INSERT INTO tocsin.job_history (" + columns +
                 ", finished_at, status, attempts) VALUES (1027, now(), now(), now(), 1, 3, 1, 'o', now(), 4, 1)");
  pqxx::connection reviver(database.url());
  auto revival = std::make_unique<pqxx::work>(reviver);
  // Reads of history wait for the end of this transaction.
  revival->exec0("LOCK TABLE tocsin.job_history IN ACCESS EXCLUSIVE MODE");
  const auto revived = revival->exec(
      "WITH d AS (DELETE FROM tocsin.job_history_dead WHERE job_id = 1027 RETURNING *) INSERT INTO "
      "tocsin.job_live (" +
      columns + ", gmt_modified) SELECT " + columns + ", now() FROM d");
  ASSERT_EQ(revived.affected_rows(), 1U);
  auto cancelled = std::async(std::launch::async, [&] {
    pqxx::connection caller(database.url());
    return pqxx::nontransaction(caller).exec1("SELECT tocsin.cancel_job(1027)")[0].as<std::string>();
  });
  EXPECT_TRUE(eventually([&] {
    return database.number(
               "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = "
               "'tocsin.job_history'::regclass") == 1;
  }));
  revival->commit();
  EXPECT_EQ(cancelled.get(), "cancelled");
}

// As after a restore that set the sequence back: the job that is created next has the id of the one before it.
class ReusedIds : public ::testing::Test {
 protected:
  void SetUp() override { database.add_noop_type(); }
  std::int64_t create() { return database.number("SELECT tocsin.create_job('noop', 'o', '2040-01-01')"); }
  void set_back(std::int64_t job) {
    database.query("SELECT setval('tocsin.job_seq', " + std::to_string(job >> 10) + ", false)");
  }
  std::int64_t records() { return database.number("SELECT count(*) FROM tocsin.job WHERE status = 'cancelled'"); }
  void expect_both_kept(std::int64_t id) {
    EXPECT_EQ(records(), 2);
    EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE job_id = " + std::to_string(id)), 1);
    EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE errors::text LIKE '%its id was " +
                              std::to_string(id) + "%'"),
              1);
  }

  TestDatabase database;
};

TEST_F(ReusedIds, FailNoCancelInTheCallersTransaction) {
  for (const bool is_by_key : {false, true}) {
    database.query("DELETE FROM tocsin.job_history");
    const auto first = create();
    EXPECT_EQ(database.query("SELECT tocsin.cancel_job(" + std::to_string(first) + ")")[0][0].as<std::string>(),
              "cancelled");
    set_back(first);
    ASSERT_EQ(create(), first);
    pqxx::connection business(database.url());
    pqxx::work tx(business);
    const std::string one = "SELECT tocsin.cancel_job(" + std::to_string(first) + ")";
    const auto told = tx.exec(is_by_key ? "SELECT result FROM tocsin.cancel_jobs('o')" : one);
    EXPECT_EQ(told[0][0].as<std::string>(), "cancelled");
    // Meanwhile others raise the sequence, as each new session of a node does.
    database.query("SET lock_timeout = '1s'; SELECT tocsin.raise_ids()");
    tx.commit();
    expect_both_kept(first);
  }
}

TEST_F(ReusedIds, ARollbackKeepsTheOlderRecord) {
  const auto first = create();
  database.query("SELECT tocsin.cancel_job(" + std::to_string(first) + ")");
  set_back(first);
  create();
  {
    pqxx::connection business(database.url());
    pqxx::work tx(business);
    tx.exec1("SELECT tocsin.cancel_job(" + std::to_string(first) + ")");
  }
  EXPECT_EQ(records(), 1);
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE job_id = " + std::to_string(first)), 2);
}

TEST_F(ReusedIds, BlockNoOutboxEntry) {
  const auto id = create();
  const auto take_over = [&](const std::string& key, bool is_cancelled, const std::string& created) {
    return database.query("SELECT error FROM tocsin.take_over(1::smallint, now() + '1 minute', ARRAY[" +
                          std::to_string(id) + "], '{1}', '{1}', '{" + (is_cancelled ? "t" : "f") +
                          "}', ARRAY[now()], ARRAY['" + created + "'::timestamptz], '{NULL}', '{NULL}', '{o}', " +
                          (key.empty() ? "'{NULL}'" : "'{" + key + "}'") + ", '{7}', '{NULL}')")[0][0];
  };
  for (const std::string key : {"", "k"})
    EXPECT_EQ(std::string(take_over(key, false, "2026-01-01").c_str()), "its job_id is that of another job")
        << "a live job has it, which nothing will change";
  database.query("SELECT tocsin.cancel_job(" + std::to_string(id) + ")");
  EXPECT_TRUE(take_over("k", true, "2026-01-01").is_null()) << "the older record gives way";
  expect_both_kept(id);
}

}  // namespace
}  // namespace tocsin
