// The report tables and views: every event counted once, and never taken back. On PostgreSQL alone.
#include "contract/report_tables.h"

#include <gtest/gtest.h>

#include <array>
#include <map>

#include "postgres/pg_report_store.h"

namespace tocsin {
namespace {

TEST_F(ReportTables, EveryEventIsCountedOnceInEveryGrain) {
  live();
  fold();
  EXPECT_EQ(sums("tocsin.report_hour"), kLived);
  EXPECT_EQ(sums("tocsin.report_day"), kLived);
  EXPECT_EQ(sums("tocsin.report_day_at('Asia/Kathmandu')"), kLived);
  EXPECT_EQ(sums("tocsin.report_slot WHERE grain = 1"), kLived);
  const auto outcome = database.query("SELECT created, done, cancelled, dead, open FROM tocsin.report_outcome")[0];
  EXPECT_EQ(outcome[0].as<int>(), 7);
  EXPECT_EQ(outcome[1].as<int>(), 3);
  EXPECT_EQ(outcome[2].as<int>(), 2);
  EXPECT_EQ(outcome[3].as<int>(), 1);
  EXPECT_EQ(outcome[4].as<int>(), 1);
  EXPECT_EQ(database.number("SELECT sum(n) FROM tocsin.report_delay WHERE from_ms <= 3600000 AND to_ms > 3600000"), 2);
  EXPECT_EQ(database.number("SELECT sum(n) FROM tocsin.report_delay"), 7);
}

TEST_F(ReportTables, OneNodeFoldsAndAnotherDoesNotWait) {
  live();
  pqxx::connection connection(database.url());
  {
    pqxx::work other(connection);
    other.exec("SELECT pg_advisory_xact_lock(hashtextextended('tocsin.fold_counts', 0))");
    EXPECT_EQ(must(maintenance.fold_counts()), 0);
  }
  EXPECT_GT(must(maintenance.fold_counts()), 0);
  EXPECT_EQ(sums("tocsin.report_day"), kLived);
}

TEST_F(ReportTables, RetentionOfJobsKeepsTheCounts) {
  live();
  fold();
  const std::string before = sums("tocsin.report_day");
  database.query(
      "DO $$ DECLARE leaf regclass; BEGIN FOR leaf IN SELECT c.oid FROM pg_class c WHERE relname ~ "
      "'^job_history_[a-z]+_[0-9]{8}$' LOOP EXECUTE 'DROP TABLE ' || leaf; END LOOP; END $$");
  fold();
  EXPECT_EQ(sums("tocsin.report_day"), before);
  EXPECT_EQ(database.number("SELECT created FROM tocsin.report_outcome"), 7);
}

TEST_F(ReportTables, ReasonsAreNormalisedAndCapped) {
  for (const char* why : {"order 4711 is broken", "order 4712 is broken", "answered 503 by 10.0.0.1:9000",
                          "answered 502 by 10.0.0.2:9001", "no 123e4567-e89b-12d3-a456-426614174000 here"})
    kill(create(why), why);
  fold();
  EXPECT_EQ(database.number("SELECT n FROM tocsin.report_dead WHERE reason = 'order # is broken'"), 2);
  EXPECT_EQ(database.number("SELECT n FROM tocsin.report_dead WHERE reason = 'answered 503 by #.#.#.#:#'"), 1);
  EXPECT_EQ(database.number("SELECT n FROM tocsin.report_dead WHERE reason = 'no <id> here'"), 1);
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.report_dead d JOIN tocsin.job j ON j.job_id = "
                            "d.sample_job_id WHERE j.status = 'dead' AND d.first_at <= d.last_at"),
            4);
  database.query("INSERT INTO tocsin.job_count_delta (type_id, status, n, detail, event, reason) SELECT " +
                 std::to_string(type_id) + ", 4, 1, 0, 4, 'why ' || chr(20000 + i) FROM generate_series(1, 300) i");
  fold();
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.report_dead"), 201);
  EXPECT_EQ(database.number("SELECT n FROM tocsin.report_dead WHERE reason = 'other'"), 104);
  kill(create("again"), "order 1 is broken");  // known before, so not another
  fold();
  EXPECT_EQ(database.number("SELECT n FROM tocsin.report_dead WHERE reason = 'order # is broken'"), 3);
}

TEST_F(ReportTables, DeadJobsAreGroupedByReasonUntilTheyAreRevived) {
  const JobId first = create("a"), second = create("b"), third = create("c");
  kill(second, "http://10.0.0.2:80 answered 500 Internal Server Error");
  kill(first, "http://10.0.0.1:80 answered 500 Internal Server Error");  // the last to die has the smaller id
  kill(third, "no such order 4711");
  Session reading{SessionConfig{database.url(), "test", 15'000, 50, false}};
  PgReportStore reports(reading, 8);
  ReportQuery query;
  query.report = Report::dead_now;
  const auto rows = [&] {
    std::map<std::string, std::string> found;
    for (const std::string& row : must(reports.report(query))) {
      const auto part = [&](const std::string& name) {
        return std::string(database.query("SELECT '" + row + "'::jsonb ->> '" + name + "'")[0][0].c_str());
      };
      found[part("reason")] = part("n") + " " + part("is_exact") + " " + part("sample_job_id");
    }
    return found;
  };
  const std::map<std::string, std::string> both = {
      {"http://#.#.#.#:# answered 500 Internal Server Error", "2 true " + std::to_string(first)},
      {"no such order #", "1 true " + std::to_string(third)}};
  EXPECT_EQ(rows(), both);
  query.biz_type = "order.unpaid";
  EXPECT_EQ(rows(), both);
  query.biz_type = "another";
  EXPECT_TRUE(rows().empty());
  query.biz_type.reset();
  must(client_store.retry_each({&first, 1}));
  EXPECT_EQ(rows().at("http://#.#.#.#:# answered 500 Internal Server Error"), "1 true " + std::to_string(second));
}

TEST_F(ReportTables, HistogramsOfNodesAreMergedAndAFlushSentTwiceCountsOnce) {
  std::vector<int> low, high;
  for (int i = 1; i <= 90; ++i) low.push_back(10);
  for (int i = 1; i <= 10; ++i) high.push_back(2000);
  const ReportHistogram first = histogram(type_id, low), second = histogram(type_id, high);
  EXPECT_TRUE(must(maintenance.flush_histograms(1, 1, {&first, 1})));
  EXPECT_FALSE(must(maintenance.flush_histograms(1, 1, {&first, 1})));
  EXPECT_TRUE(must(maintenance.flush_histograms(2, 1, {&second, 1})));
  for (const char* view : {"tocsin.report_lateness",
                           "(SELECT slot, 100 AS n, p50_ms, p90_ms, p99_ms, max_ms FROM "
                           "tocsin.report_day_at('Asia/Kolkata')) r"}) {
    const auto row = database.query("SELECT n, p50_ms, p90_ms, p99_ms, max_ms FROM " + std::string(view))[0];
    EXPECT_EQ(row[0].as<int>(), 100);
    EXPECT_NEAR(row[1].as<double>(), 10, 0.7);
    EXPECT_NEAR(row[2].as<double>(), 2000, 140);
    EXPECT_NEAR(row[3].as<double>(), 2000, 140);
    EXPECT_LE(row[3].as<double>(), 2000);
    EXPECT_EQ(row[4].as<double>(), 2000);
  }
}

TEST_F(ReportTables, BucketsHaveTheValueInSqlThatTheyHaveInTheNode) {
  for (const int bucket : {0, 1, 15, 16, 17, 31, 32, 100, 255, 400}) {
    const auto ms = database
                        .query("SELECT (tocsin.histogram_quantiles(ARRAY[(" + std::to_string(bucket) +
                               "::bigint << 44) + 3]))[1]")[0][0]
                        .as<double>();
    EXPECT_DOUBLE_EQ(ms, histogram_value(bucket) / 1000) << bucket;
  }
}

TEST_F(ReportTables, TheTargetOfATypeIsMetOrMissedAndItsBudgetIsSpent) {
  const std::string read =
      "SELECT n, missed, share, budget_left, is_met, target_ms, target_share, days FROM "
      "tocsin.report_slo";
  EXPECT_EQ(database.query(read)[0][4].as<bool>(), true) << "without starts";
  std::vector<int> starts(1000, 5);
  for (int i = 0; i < 5; ++i) starts[static_cast<std::size_t>(i)] = 1500;
  ReportHistogram all = histogram(type_id, starts);
  all.slot = WallTime(Duration(database.number("SELECT (extract(epoch FROM now()) * 1000000)::bigint")));
  must(maintenance.flush_histograms(1, 1, {&all, 1}));
  auto row = database.query(read)[0];
  EXPECT_EQ(row[0].as<int>(), 1000);
  EXPECT_EQ(row[1].as<int>(), 5);
  EXPECT_DOUBLE_EQ(row[2].as<double>(), 0.995);
  EXPECT_NEAR(row[3].as<double>(), 0.5, 1e-9);
  EXPECT_TRUE(row[4].as<bool>());
  all = histogram(type_id, std::vector<int>(10, 3000));
  all.slot = WallTime(Duration(database.number("SELECT (extract(epoch FROM now()) * 1000000)::bigint")));
  must(maintenance.flush_histograms(1, 2, {&all, 1}));
  row = database.query(read)[0];
  EXPECT_FALSE(row[4].as<bool>());
  EXPECT_LT(row[3].as<double>(), 0);
}

TEST_F(ReportTables, ATargetThatIsUsedUpExactlyIsMet) {
  std::vector<int> starts(100, 5);
  std::fill_n(starts.begin(), 10, 1500);
  ReportHistogram all = histogram(type_id, starts);
  all.slot = WallTime(Duration(database.number("SELECT (extract(epoch FROM now()) * 1000000)::bigint")));
  must(maintenance.flush_histograms(1, 1, {&all, 1}));
  for (const char* share : {"0.9", "0.8"}) {
    database.query("UPDATE tocsin.biz_type SET slo = jsonb_build_object('lateness_ms', 1000, 'share', " +
                   std::string(share) + ")");
    const auto row = database.query("SELECT is_met, budget_left FROM tocsin.report_slo")[0];
    EXPECT_TRUE(row[0].as<bool>()) << share;
    EXPECT_DOUBLE_EQ(row[1].as<double>(), share == std::string("0.9") ? 0 : 0.5);
  }
}

TEST_F(ReportTables, TheBacklogCountsDueJobsByReason) {
  create("a");
  create("b");
  create("c", std::chrono::hours(1));
  const std::string read = "SELECT due, oldest_age_ms >= 0, waits_for FROM tocsin.backlog";
  auto row = database.query(read)[0];
  EXPECT_EQ(row[0].as<int>(), 2);
  EXPECT_TRUE(row[1].as<bool>());
  EXPECT_STREQ(row[2].c_str(), "workers");
  database.query("UPDATE tocsin.biz_type SET handler = '{\"kind\":\"pull\"}'");
  EXPECT_STREQ(database.query(read)[0][2].c_str(), "consumers");
  database.query("UPDATE tocsin.biz_type SET paused = true");
  EXPECT_STREQ(database.query(read)[0][2].c_str(), "paused");
  database.query("UPDATE tocsin.biz_type SET paused = false, max_running = 1");
  claim(create("d"));
  EXPECT_STREQ(database.query(read)[0][2].c_str(), "max_running");
  database.query("UPDATE tocsin.job_live SET fire_at = now() - interval '1 s' WHERE status = 1");
  EXPECT_STREQ(database.query(read)[0][2].c_str(), "consumers") << "a lease that has ended holds no place";
  database.query("UPDATE tocsin.biz_type SET catch_up = '{\"rate_per_s\": 5}'");
  database.query("UPDATE tocsin.job_live SET fire_at = now() - interval '10 s' WHERE status = 0");
  EXPECT_STREQ(database.query(read)[0][2].c_str(), "catch_up");
}

TEST_F(ReportTables, ABacklogCountedInPartIsMarked) {
  const auto write = [&](int first, int last) {
    database.query(
        "INSERT INTO tocsin.job_live (job_id, action_time, fire_at, gmt_create, gmt_modified, type_id, shard, "
        "max_attempts, biz_id) SELECT i * 1024 + i % 8, now(), now(), now(), now(), " +
        std::to_string(type_id) + ", i % 8, 16, i::text FROM generate_series(" + std::to_string(first) + ", " +
        std::to_string(last) + ") i");
  };
  const std::string read = "SELECT due, is_exact FROM tocsin.backlog";
  write(1, 2000);
  EXPECT_EQ(database.query(read)[0][0].as<int>(), 2000);
  EXPECT_TRUE(database.query(read)[0][1].as<bool>());
  write(2001, 2001);
  EXPECT_EQ(database.query(read)[0][0].as<int>(), 2000);
  EXPECT_FALSE(database.query(read)[0][1].as<bool>());
}

TEST_F(ReportTables, TheLastMinutesHaveARowPerTypeAndOneForAll) {
  live();
  fold();
  Session reading{SessionConfig{database.url(), "test", 15'000, 50, false}};
  PgReportStore reports(reading, 8);
  ReportQuery query;
  query.report = Report::recent;
  const auto by_type = must(reports.report(query));
  ASSERT_EQ(by_type.size(), 1U);
  EXPECT_NE(by_type[0].find("\"order.unpaid\""), std::string::npos) << by_type[0];
  EXPECT_NE(by_type[0].find("\"created\": 7"), std::string::npos) << by_type[0];
  EXPECT_NE(by_type[0].find("\"attempts\": 6"), std::string::npos) << by_type[0];
  EXPECT_NE(by_type[0].find("\"retried\": 1"), std::string::npos) << by_type[0];
  query.report = Report::recent_of_all;
  const auto of_all = must(reports.report(query));
  ASSERT_EQ(of_all.size(), 1U);
  EXPECT_NE(of_all[0].find("\"created\": 7"), std::string::npos) << of_all[0];
}

TEST_F(ReportTables, TheHorizonIsExactForSmallTypes) {
  for (int i = 0; i < 3; ++i) create("a" + std::to_string(i), std::chrono::minutes(90));
  create("f", std::chrono::minutes(121));  // its hour may begin within the minutes that are counted
  create("b", std::chrono::hours(30));
  create("c", std::chrono::hours(24 * 40));
  create("d", std::chrono::hours(24 * 200));
  const JobId gone = create("e", std::chrono::minutes(90));
  must(client_store.cancel({&gone, 1}, LockWait::some_seconds));
  EXPECT_TRUE(must(maintenance.count_horizon()));
  EXPECT_FALSE(must(maintenance.count_horizon())) << "it was counted a moment ago";
  const auto sum = [&](const std::string& width) {
    return database.number("SELECT sum(n) FROM tocsin.horizon WHERE is_exact AND low = n AND high = n AND width = '" +
                           width + "'");
  };
  EXPECT_EQ(sum("minute"), 3);
  EXPECT_EQ(sum("hour"), 5);
  EXPECT_EQ(sum("day"), 6);
}

TEST_F(ReportTables, JobsDueNextAreOneSumOverMinutesAndTypes) {
  Session reading{SessionConfig{database.url(), "test", 15'000, 50, false}};
  PgReportStore reports(reading, 8);
  ReportQuery query;
  query.report = Report::next;
  query.from = WallTime(std::chrono::sys_days(std::chrono::year(2030) / 1 / 1));
  query.to = *query.from + std::chrono::hours(1);
  EXPECT_NE(must(reports.report(query)).at(0).find("\"n\": null"), std::string::npos) << "not counted yet";
  database.query(
      "INSERT INTO tocsin.biz_type (name, handler, ttr_ms, max_attempts, backoff, catch_up) SELECT 'type ' || i, "
      "'{\"kind\":\"noop\"}', 30000, 16, '{}', '{}' FROM generate_series(1, 29) i");
  database.query(
      "INSERT INTO tocsin.horizon_slot SELECT w.name, timestamptz '2030-01-01 00:00Z' + i * w.length, type_id, 2, 2, "
      "2, "
      "true, now() FROM tocsin.biz_type, (VALUES ('minute', interval '1 minute'), ('hour', '1 hour')) w (name, "
      "length), "
      "generate_series(0, 119) i");
  EXPECT_NE(must(reports.report(query)).at(0).find("\"n\": 3600"), std::string::npos);

  query = {};
  query.report = Report::horizon;
  query.limit = 10'000;
  EXPECT_EQ(must(reports.report(query)).size(), 2U * 120 * 30) << "of every width";
  query.width = "hour";
  const auto hours = must(reports.report(query));
  EXPECT_EQ(hours.size(), 120U * 30);
  EXPECT_NE(hours.front().find("\"hour\""), std::string::npos);
}

TEST_F(ReportTables, TheHorizonOfALargeTypeIsASampleWithItsBounds) {
  database.query(
      "INSERT INTO tocsin.job_live (job_id, action_time, fire_at, gmt_create, gmt_modified, type_id, shard, "
      "max_attempts, biz_id) SELECT i * 1024 + i % 8, now() + interval '30 hours', now() + interval '30 "
      "hours', now(), now(), " +
      std::to_string(type_id) + ", i % 8, 16, i::text FROM generate_series(1, 4000) i");
  database.query("INSERT INTO tocsin.job_count_delta (type_id, status, n) VALUES (" + std::to_string(type_id) +
                 ", 0, 4000)");
  database.query("INSERT INTO tocsin.horizon_type VALUES (" + std::to_string(type_id) + ", '2020-01-01', 2000)");
  EXPECT_TRUE(must(maintenance.count_horizon()));
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.horizon WHERE NOT is_exact AND low < n AND high > n"), 2);
  EXPECT_EQ(database.number("SELECT sum(n) FROM tocsin.horizon WHERE width = 'day'"), 4000);
  database.query("UPDATE tocsin.horizon_type SET counted_at = '2020-01-01'");
  database.query("SELECT tocsin.shrink_horizon()");
  EXPECT_EQ(database.number("SELECT most_rows FROM tocsin.horizon_type"), 1000);
  EXPECT_FALSE(must(maintenance.count_horizon())) << "not at once after a time-out";
}

TEST_F(ReportTables, RowsForMergingAreThoseOfTheViewsPageByPage) {
  live();
  fold();
  const ReportHistogram lateness = histogram(type_id, {1, 2, 3}), duration = histogram(type_id, {4}, ReportKind::done);
  must(maintenance.flush_histograms(1, 1, std::array{lateness, duration}));
  Session reading{SessionConfig{database.url(), "test", 15'000, 50, false}};
  PgReportStore reports(reading, 8);
  using R = Report;
  const std::map<Report, std::string> views = {
      {R::hour, "report_hour"},         {R::day, "report_day"},     {R::lateness, "report_lateness"},
      {R::duration, "report_duration"}, {R::slo, "report_slo"},     {R::dead, "report_dead"},
      {R::outcome, "report_outcome"},   {R::delay, "report_delay"}, {R::horizon, "horizon"},
      {R::backlog, "backlog"},          {R::audit, "audit"}};
  for (const auto& [report, view] : views) {
    ReportQuery query;
    query.report = report;
    query.limit = 1000;
    EXPECT_EQ(must(reports.report(query)).size(),
              static_cast<std::size_t>(database.number("SELECT count(*) FROM tocsin." + view)))
        << view;
    query.biz_type = "order.unpaid";
    query.from = WallTime(std::chrono::hours(1));
    query.to = WallTime(std::chrono::hours(1'000'000));
    query.tz = "Asia/Kathmandu";
    EXPECT_EQ(must(reports.report(query)).size() > 0, database.number("SELECT count(*) FROM tocsin." + view) > 0)
        << view;
    for (const char* zone : {"Nowhere/City", "Nowhere/City1", "+05:30", "UTC+99", "'; DROP TABLE"}) {
      query.tz = zone;
      const auto refused = reports.report(query);
      ASSERT_FALSE(refused) << view << ' ' << zone;
      EXPECT_EQ(refused.error().code, ErrorCode::invalid);
      EXPECT_EQ(refused.error().field, "tz");
    }
    for (const char* zone : {"Etc/GMT+5", "est5edt", "America/Port-au-Prince"}) {
      query.tz = zone;
      EXPECT_TRUE(reports.report(query)) << view << ' ' << zone;
    }
  }
  ReportQuery page;
  page.report = Report::hour;
  page.limit = 1;
  EXPECT_EQ(must(reports.report(page)).size(), 1U);
  page.after = {"2027-01-15T08:00:00.000000Z", "order.unpaid"};
  const auto second = must(reports.report(page));
  ASSERT_EQ(second.size(), 1U);
  EXPECT_NE(second[0].find("buckets"), std::string::npos);
  page.after = {"1999-01-15T08:00:00.000000Z", "order.unpaid"};
  EXPECT_TRUE(must(reports.report(page)).empty());
}

TEST_F(ReportTables, TheRoleOfReadersSeesTheViewsAndNothingElse) {
  live();
  fold();
  pqxx::connection connection(database.url());
  const auto as_reader = [&](const std::string& sql) {
    pqxx::work tx(connection);
    tx.exec("SET LOCAL ROLE tocsin_report");
    return tx.exec(sql).size();
  };
  for (const char* view :
       {"report_hour", "report_day", "report_day_at('Europe/Berlin')", "report_lateness", "report_duration",
        "report_slo", "report_dead", "report_outcome", "report_delay", "horizon", "backlog", "audit"})
    EXPECT_NO_THROW(as_reader(std::string("SELECT * FROM tocsin.") + view)) << view;
  for (const char* table : {"job", "job_live", "report_slot", "audit_log", "biz_type", "node"})
    EXPECT_THROW(as_reader(std::string("SELECT * FROM tocsin.") + table), pqxx::insufficient_privilege) << table;
  EXPECT_EQ(database.number("SELECT count(*) FROM pg_class c, aclexplode(c.relacl) a WHERE c.relnamespace = "
                            "'tocsin'::regnamespace AND a.grantee = 0"),
            0)
      << "granted to PUBLIC";
  EXPECT_THROW(as_reader("SELECT * FROM tocsin.report_day_at('Nowhere/City')"), pqxx::sql_error);
  database.query("TRUNCATE tocsin.report_slot");
  EXPECT_THROW(as_reader("SELECT * FROM tocsin.report_day_at('Nowhere/City')"), pqxx::sql_error) << "without data";
}

}  // namespace
}  // namespace tocsin
