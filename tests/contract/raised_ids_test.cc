// tocsin.raise_ids() on a server that took over. On PostgreSQL alone: the database in memory has no timeline.
#include <gtest/gtest.h>

#include <thread>

#include "postgres/pg_client_store.h"
#include "support/process.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

class RaisedIds : public ::testing::Test {
 protected:
  // As on a standby that was promoted: what it copied is of another timeline than it writes.
  void promote() { database.query("UPDATE tocsin.setting SET value = '000000FF' WHERE name = 'timeline'"); }
  std::int64_t last() { return database.number("SELECT last_value FROM tocsin.job_seq"); }
  bool raise() { return database.query("SELECT tocsin.raise_ids()")[0][0].as<bool>(); }

  static constexpr std::int64_t kDistance = 1'000'000;
  TestDatabase database{4};
};

TEST_F(RaisedIds, AreRaisedOnceAfterAPromotion) {
  EXPECT_FALSE(raise()) << "on the server that made the schema";
  const auto before = last();
  promote();
  EXPECT_TRUE(raise());
  EXPECT_GE(last(), before + kDistance);
  const auto raised = last();
  EXPECT_FALSE(raise());
  EXPECT_EQ(last(), raised);
}

TEST_F(RaisedIds, AreRaisedByAsManyDrawsWhateverTheStep) {
  database.query("ALTER SEQUENCE tocsin.job_seq INCREMENT BY 64 RESTART WITH 67");
  promote();
  EXPECT_TRUE(raise());
  EXPECT_GE(last(), 64 * kDistance);
  EXPECT_EQ(last() % 64, 3) << "the numbers of this database";
}

TEST_F(RaisedIds, AreRaisedOnceByTwoSessions) {
  promote();
  pqxx::connection first(database.url()), second(database.url());
  pqxx::work tx(first);
  EXPECT_TRUE(tx.exec1("SELECT tocsin.raise_ids()")[0].as<bool>());
  bool is_raised_again = true;
  std::thread other(
      [&] { is_raised_again = pqxx::nontransaction(second).exec1("SELECT tocsin.raise_ids()")[0].as<bool>(); });
  EXPECT_TRUE(eventually([&] { return database.number("SELECT count(*) FROM pg_locks WHERE NOT granted") > 0; }));
  tx.commit();
  other.join();
  EXPECT_FALSE(is_raised_again);
}

TEST_F(RaisedIds, AreRaisedLaterIfTheyCannotBeAtOnce) {
  const auto before = last();
  promote();
  database.query("SELECT setval('tocsin.job_seq', 9007199254740991 - 1000)");
  EXPECT_FALSE(raise()) << "ids would exceed what JSON can hold";
  database.query("SELECT setval('tocsin.job_seq', " + std::to_string(before) + ")");
  EXPECT_TRUE(raise());
  EXPECT_GE(last(), before + kDistance);
}

TEST_F(RaisedIds, ASessionThatRaisesThemHoldsNoKey) {
  database.add_noop_type();
  pqxx::connection first(database.url());
  pqxx::work tx(first);
  tx.exec("SELECT tocsin.raise_ids()");
  std::vector<NewJob> jobs(2);
  for (NewJob& job : jobs) {
    job.type_id = 1;
    job.biz_id = "order";
    job.when.in = std::chrono::hours(1);
    job.idempotency_key = "key " + std::to_string(&job - jobs.data());
  }
  SessionConfig config{database.url()};
  config.lock_timeout_ms = 100;
  Session session(config);
  const auto created = PgClientStore(session, 4).create(jobs, CreateMode::each_but_held);
  ASSERT_FALSE(created) << "answered as if another caller held the keys";
  EXPECT_EQ(created.error().code, ErrorCode::unavailable) << created.error().message;
}

}  // namespace
}  // namespace tocsin
