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
  // Whoever reads history waits for the end of this.
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

}  // namespace
}  // namespace tocsin
