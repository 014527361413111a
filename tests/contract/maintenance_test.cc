// PgMaintenance: retention by several nodes that keep step, and days without tables. On PostgreSQL alone: a fake would
// have no partitions.
#include <gtest/gtest.h>

#include <future>

#include "postgres/pg_client_store.h"
#include "postgres/pg_job_store.h"
#include "postgres/pg_maintenance.h"
#include "support/manual_clock.h"
#include "support/must.h"
#include "support/process.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

class Retention : public testing::Test {
 protected:
  Retention() { database.query("SELECT tocsin.ensure_history('2020-01-01', '2020-01-02')"); }

  std::vector<PgMaintenance::OldDay> old_days() {
    return must(maintenance.old_history({{"done", 7}, {"dead", 30}})).days;
  }
  // Whether it was this one that dropped it.
  static bool drop(PgMaintenance& node, const PgMaintenance::OldDay& day) { return must(node.drop_history(day)); }

  TestDatabase database;
  Session session{SessionConfig{database.url()}}, other_session{SessionConfig{database.url()}};
  PgMaintenance maintenance{session}, other{other_session};
};

TEST_F(Retention, DropsOnlyTablesOlderThanTheRetention) {
  const auto history = [&] {
    return database.number("SELECT count(*) FROM pg_class WHERE relname ~ '^job_history_[a-z]+_[0-9]{8}$'");
  };
  const auto before = history();
  const auto days = old_days();
  ASSERT_EQ(days.size(), 4U);
  for (const auto& day : days) EXPECT_TRUE(drop(maintenance, day)) << day.table;
  EXPECT_TRUE(old_days().empty());
  EXPECT_EQ(history(), before - 4) << "cancelled jobs are kept for ever, and what is new";
}

TEST_F(Retention, ARemovedTypeIsDeletedAfterItsHistory) {
  database.query(
      "INSERT INTO tocsin.biz_type (name, handler, ttr_ms, max_attempts, backoff, catch_up, removed_at) SELECT name,"
      " '{\"kind\":\"noop\"}', 1000, 1, '{}', '{}', at::timestamptz FROM (VALUES ('long ago', '2019-06-01T00:00Z'), "
      "('has a "
      "job',"
      " '2019-06-01T00:00Z'), ('on the first day', '2020-01-01T12:00Z'), ('in use', NULL)) v (name, at)");
  database.query(
      "INSERT INTO tocsin.job_live (job_id, action_time, fire_at, gmt_create, gmt_modified, type_id, shard,"
      " max_attempts, biz_id) SELECT 1024, now(), now(), now(), now(), type_id, 0, 1, 'a' FROM tocsin.biz_type WHERE"
      " name = 'has a job'");
  const auto names = [&] {
    EXPECT_TRUE(maintenance.forget_removed_types());
    return database.query("SELECT string_agg(name, ', ' ORDER BY name) FROM tocsin.biz_type")[0][0].as<std::string>();
  };
  EXPECT_EQ(names(), "has a job, in use, on the first day");
  for (const auto& day : old_days()) drop(maintenance, day);
  database.query("DROP TABLE tocsin.job_history_cancelled_20200101, tocsin.job_history_cancelled_20200102");
  EXPECT_EQ(names(), "has a job, in use");
}

// Another one may have jobs or reports of the type, by its id.
TEST_F(Retention, TheControlDatabaseOfSeveralKeepsRemovedTypes) {
  database.query(
      "INSERT INTO tocsin.biz_type (name, handler, ttr_ms, max_attempts, backoff, catch_up, removed_at) VALUES "
      "('long ago', '{\"kind\":\"noop\"}', 1000, 1, '{}', '{}', '2019-06-01T00:00Z');"
      "INSERT INTO tocsin.database (place, name, address, server, database_oid) VALUES (1, 'b', '', 1, 1)");
  const auto types = [&] {
    EXPECT_TRUE(maintenance.forget_removed_types());
    return database.number("SELECT count(*) FROM tocsin.biz_type");
  };
  EXPECT_EQ(types(), 1);
  database.query("DELETE FROM tocsin.database WHERE place = 1");
  EXPECT_EQ(types(), 0) << "the only database, or one that has a copy";
}

TEST_F(Retention, CountsTheLaterDaysWithFinishesOfEachDay) {
  const auto finish_on = [&](const char* day) {
    database.query(
        std::string("SELECT tocsin.ensure_history('") + day + "', '" + day +
        "'); INSERT INTO tocsin.job_history (job_id, action_time, fire_at, gmt_create, finished_at, type_id, "
        "shard, status, attempts, max_attempts, biz_id) SELECT 1024, t, t, t, t, 1, 0, 4, 1, 1, 'x' FROM "
        "(SELECT '" +
        day + " 12:00:00+00'::timestamptz AS t) t");
  };
  // The last one comes of a clock that was ahead.
  for (const char* day : {"2020-01-01", "2020-01-05", "2020-01-09", "2120-01-01"}) finish_on(day);
  std::map<std::string, PastDay> past;
  for (const auto& day : old_days()) past[day.table] = day.past;
  EXPECT_TRUE(past.at("job_history_dead_20200101").is_used);
  EXPECT_EQ(past.at("job_history_dead_20200101").later_days_used, 2);
  EXPECT_EQ(past.at("job_history_dead_20200101").keep, 30);
  EXPECT_FALSE(past.at("job_history_done_20200101").is_used) << "its own table holds nothing";
  EXPECT_EQ(past.at("job_history_dead_20200105").later_days_used, 1);
  EXPECT_EQ(past.at("job_history_dead_20200105").day, std::chrono::sys_days(std::chrono::year(2020) / 1 / 5));
}

// A clock that is years ahead adds one day with counts for each real day.
TEST_F(Retention, ReportsAreDeletedWhenAsManyLaterDaysHaveCounts) {
  database.query(
      "INSERT INTO tocsin.audit_log (at, actor, role, action) VALUES ('2020-01-01 00:00Z', 'a', 'admin', 'b')");
  database.query(
      "INSERT INTO tocsin.bulk (action, filter, matched, node_id, lease_until, state, finished_at) VALUES ('cancel', "
      "'{}', 1, 1, now(), 'done', '2020-01-01 00:00Z'), ('cancel', '{}', 1, 1, now(), 'running', NULL)");
  database.query("INSERT INTO tocsin.bulk_progress (bulk_id, written_at) VALUES (1, '2020-01-01 00:00Z'), (2, now())");
  const auto left = [&] {
    EXPECT_TRUE(maintenance.forget_old_reports());
    const auto bulks = database.number("SELECT count(*) FROM tocsin.bulk");
    EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.bulk_progress"), bulks) << "one was written now";
    EXPECT_EQ(bulks, database.number("SELECT count(*) FROM tocsin.audit_log") + 1) << "one still runs";
    return bulks - 1;
  };
  EXPECT_EQ(left(), 1) << "by the clock alone";
  database.query(
      "INSERT INTO tocsin.report_slot (grain, slot, type_id) SELECT 3, timestamptz '2020-01-01 00:00Z' + d * interval "
      "'1 day', type FROM generate_series(0, 399) d, generate_series(1, 3) type");
  EXPECT_EQ(left(), 1);
  database.query("INSERT INTO tocsin.report_slot (grain, slot, type_id) VALUES (3, '2025-01-01 00:00Z', 1)");
  EXPECT_EQ(left(), 1) << "its own day is the 401st";
  database.query("INSERT INTO tocsin.report_slot (grain, slot, type_id) VALUES (3, '2025-01-02 00:00Z', 1)");
  EXPECT_EQ(left(), 0);
  EXPECT_EQ(database.number("SELECT count(DISTINCT slot) FROM tocsin.report_slot"), 401);
}

TEST_F(Retention, TodayHasHistoryWhenEveryKindHasATable) {
  const auto has_today = [&] {
    const auto answer = maintenance.has_history_today();
    return answer && *answer;
  };
  for (const char* kind : {"done", "cancelled", "dead"}) {
    EXPECT_TRUE(has_today());
    database.query("DO $$ BEGIN EXECUTE 'DROP TABLE tocsin.job_history_" + std::string(kind) +
                   "_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD'); END $$");
    EXPECT_FALSE(has_today()) << kind;
    ASSERT_TRUE(maintenance.prepare_history());
  }
}

TEST_F(Retention, ATableThatAnotherNodeDroppedIsNoError) {
  for (const auto& day : old_days()) {
    EXPECT_TRUE(drop(other, day));
    EXPECT_FALSE(drop(maintenance, day)) << day.table;
  }
}

TEST_F(Retention, ATableThatAnotherNodeDetachedIsDroppedNextTime) {
  const auto seen = old_days();
  database.query("ALTER TABLE tocsin.job_history_done DETACH PARTITION tocsin.job_history_done_20200101");
  for (const auto& day : seen) EXPECT_EQ(drop(maintenance, day), day.table != "job_history_done_20200101");
  const auto left = old_days();
  ASSERT_EQ(left.size(), 1U);
  EXPECT_TRUE(drop(maintenance, left.front()));
}

TEST_F(Retention, ATableThatAnotherNodeIsDetachingIsSkipped) {
  const auto day = old_days().back();
  pqxx::connection connection(database.url());
  auto reader = std::make_unique<pqxx::work>(connection);
  reader->exec("SELECT FROM tocsin.job_history_" + day.status);
  auto detaching = std::async(std::launch::async, [&] { return drop(other, day); });
  EXPECT_TRUE(
      eventually([&] { return database.number("SELECT count(*) FROM pg_inherits WHERE inhdetachpending") == 1; }));
  EXPECT_FALSE(drop(maintenance, day));
  reader.reset();
  EXPECT_TRUE(detaching.get());
}

// After a step of the clock by days. A business cancels a job then, in a transaction that makes the missing table and
// stays open.
class DayWithoutTables : public testing::Test {
 protected:
  DayWithoutTables() {
    database.add_noop_type();
    EXPECT_TRUE(store.warm_up());
    database.query(
        "DO $$ DECLARE t text; BEGIN FOR t IN SELECT relname FROM pg_class WHERE relname ~ "
        "'^job_history_[a-z]+_[0-9]{8}$' LOOP EXECUTE 'DROP TABLE tocsin.' || t; END LOOP; END $$");
    const JobId job = create();
    business.exec("SET LOCAL lock_timeout = '5s'");
    EXPECT_EQ(business.exec1(verb(job))[0].as<std::string>(), "cancelled");
  }
  JobId create() { return database.number("SELECT tocsin.create_job('noop', 'order', '2026-01-01')"); }
  static std::string verb(JobId job) { return "SELECT tocsin.cancel_job(" + std::to_string(job) + ")"; }
  std::string cancel_by_sql(JobId job) { return database.query(verb(job))[0][0].as<std::string>(); }
  CancelReply::Kind cancel_by_node(JobId job) {
    return must(PgClientStore(session, 8).cancel({&job, 1}, LockWait::some_seconds)).front().kind;
  }
  bool fires(JobId job) {
    const Candidate due{job, 1, WallTime{}};
    const auto fired = store.fire({&due, 1}, "node-a");
    EXPECT_TRUE(fired) << fired.error().message;
    return fired && fired->size() == 1;
  }
  // The kinds that have a table for today, as others see it.
  std::string kinds_today() {
    return database
        .query(
            "SELECT coalesce(string_agg(kind, ',' ORDER BY kind), '') FROM unnest('{done,cancelled,dead}'::text[]) "
            "kind WHERE to_regclass('tocsin.job_history_' || kind || to_char(now() AT TIME ZONE 'UTC', "
            "'_YYYYMMDD')) IS NOT NULL")[0][0]
        .as<std::string>();
  }

  TestDatabase database;
  Session session{SessionConfig{database.url()}};
  const ManualClock clock;
  PgJobStore store{session, clock};
  PgMaintenance maintenance{session};
  pqxx::connection connection{database.url()};
  pqxx::work business{connection};
};

TEST_F(DayWithoutTables, GetsThoseOfOutcomesWhileATransactionThatCancelsIsOpen) {
  EXPECT_EQ(kinds_today(), "");
  const auto prepared = maintenance.prepare_history();
  ASSERT_TRUE(prepared) << prepared.error().message;
  EXPECT_FALSE(*prepared) << "the transaction holds the table of cancelled jobs";
  EXPECT_EQ(kinds_today(), "dead,done");
  EXPECT_FALSE(must(maintenance.has_history_today())) << "or nobody would try again";
  EXPECT_TRUE(fires(create()));
  const JobId job = create();
  const auto refused = PgClientStore(session, 8).cancel({&job, 1}, LockWait::some_seconds);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);

  business.commit();
  EXPECT_EQ(kinds_today(), "cancelled,dead,done");
  EXPECT_EQ(cancel_by_node(job), CancelReply::Kind::cancelled);
  EXPECT_EQ(cancel_by_sql(create()), "cancelled");
  EXPECT_TRUE(must(maintenance.prepare_history())) << "those of the next days, too";
}

TEST_F(DayWithoutTables, GetsThatOfCancelsWhenTheTransactionIsRolledBack) {
  EXPECT_FALSE(must(maintenance.prepare_history()));
  business.abort();
  EXPECT_EQ(kinds_today(), "dead,done");
  EXPECT_TRUE(must(maintenance.prepare_history()));
  EXPECT_EQ(kinds_today(), "cancelled,dead,done");
  EXPECT_EQ(cancel_by_node(create()), CancelReply::Kind::cancelled);
}

TEST_F(DayWithoutTables, LetsOtherTransactionsThatCancelWait) {
  const auto cancel_in = [&](const std::string& isolation, JobId job) {
    return std::async(std::launch::async, [this, isolation, job] {
      pqxx::connection caller(database.url());
      pqxx::nontransaction tx(caller);
      tx.exec0("SET default_transaction_isolation = '" + isolation + "'");
      return tx.exec1(verb(job))[0].as<std::string>();
    });
  };
  auto first = cancel_in("read committed", create()), second = cancel_in("repeatable read", create());
  EXPECT_TRUE(eventually([&] {
    return database.number(
               "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = "
               "current_database()") == 2;
  }));
  business.commit();
  EXPECT_EQ(first.get(), "cancelled");
  EXPECT_EQ(second.get(), "cancelled");
}

}  // namespace
}  // namespace tocsin
