// The time limit of slow lists and reports. On PostgreSQL alone.
#include <gtest/gtest.h>

#include "postgres/pg_report_store.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

class ListTimeout : public ::testing::Test {
 protected:
  SessionConfig limited_to(int limit_ms) const {
    SessionConfig config{database.url()};
    config.has_pinned_plans = false;
    config.statement_timeout_ms = limit_ms;
    return config;
  }
  // Of pending jobs; the only one there is has the type 1.
  Result<JobList> list(int limit_ms) {
    Session session(limited_to(limit_ms));
    JobFilter filter;
    filter.status = JobStatus::pending;
    filter.is_local_only = true;
    return PgReportStore(session, 8).list(filter);
  }
  void SetUp() override {
    database.query(
        "INSERT INTO tocsin.job_live (job_id, action_time, fire_at, gmt_create, gmt_modified, type_id, shard, "
        "max_attempts, biz_id) VALUES (1024, now(), now(), now(), now(), 1, 0, 16, 'key')");
  }
  TestDatabase database;
};

// A list reads twice when the newest rows do not fill its page: the second read has what the first one left of the
// time.
TEST_F(ListTimeout, CoversBothReadsOfAList) {
  // The filter of local jobs notes which limit it runs under.
  database.query("CREATE SEQUENCE public.limit_ms");
  database.query(
      "CREATE OR REPLACE FUNCTION tocsin.lives_here(shard smallint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN "
      "PERFORM setval('public.limit_ms', (extract(epoch FROM current_setting('statement_timeout')::interval) * "
      "1000)::bigint); RETURN true; END $$");
  const auto jobs = list(5'000);
  ASSERT_TRUE(jobs) << jobs.error().message;
  EXPECT_EQ(jobs->jobs.size(), 1U);
  EXPECT_LT(database.number("SELECT last_value FROM public.limit_ms"), 5'000);
}

TEST_F(ListTimeout, HasItsOwnErrorField) {
  pqxx::connection other(database.url());
  pqxx::work lock(other);
  lock.exec("LOCK TABLE tocsin.job_live IN ACCESS EXCLUSIVE MODE");
  const auto jobs = list(200);
  ASSERT_FALSE(jobs);
  EXPECT_EQ(jobs.error().code, ErrorCode::unavailable);
  EXPECT_EQ(jobs.error().field, kTooSlow);
}

TEST_F(ListTimeout, AppliesToReports) {
  Session session(limited_to(200));
  PgReportStore reports(session, 8);
  ReportQuery query;
  query.report = Report::hour;
  pqxx::connection other(database.url());
  {
    pqxx::work lock(other);
    lock.exec("LOCK TABLE tocsin.report_slot IN ACCESS EXCLUSIVE MODE");
    const auto rows = reports.report(query);
    ASSERT_FALSE(rows);
    EXPECT_EQ(rows.error().code, ErrorCode::unavailable);
    EXPECT_EQ(rows.error().field, kTooSlow);
  }
  EXPECT_TRUE(reports.report(query)) << "the session is as good as before";
}

}  // namespace
}  // namespace tocsin
