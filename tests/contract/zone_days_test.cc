// Days of time zones: the same numbers whether they are kept or added up. On PostgreSQL alone.
#include <sstream>

#include "contract/report_tables.h"
#include "postgres/pg_report_store.h"

namespace tocsin {
namespace {

// Days of zones that begin with an hour of UTC, between hours, and on days of 23 and 25 hours.
class DaysOfZones : public ReportTables {
 protected:
  static constexpr const char* kZones[] = {"UTC",          "Europe/Berlin",    "America/New_York", "Asia/Kathmandu",
                                           "Asia/Kolkata", "America/St_Johns", "Pacific/Chatham",  "Pacific/Apia",
                                           "Africa/Lagos"};
  DaysOfZones() {
    other_type = static_cast<TypeId>(
        database.number("INSERT INTO tocsin.biz_type (name, handler, ttr_ms, max_attempts, backoff, catch_up) VALUES "
                        "('rare', '{}', 30000, 16, '{}', '{}') RETURNING type_id"));
  }
  // Events of the hours `first` to `last` before this one, every `step`: counts and lateness.
  void live_hours(int first, int last, int step = 1) {
    live_these("SELECT * FROM generate_series(" + std::to_string(first) + ", " + std::to_string(last) + ", " +
               std::to_string(step) + ") i");
  }
  // The days around this one, and those around each change of an offset in the last year.
  void live_a_year() {
    const auto offset = [](const std::string& zone, const std::string& hours) {
      const std::string at = "now() - " + hours + " * interval '1 hour'";
      return "(" + at + ") AT TIME ZONE '" + zone + "' - (" + at + ") AT TIME ZONE 'UTC'";
    };
    std::string changes;
    for (const char* zone : {"Europe/Berlin", "America/New_York", "Pacific/Chatham"})
      changes += " OR " + offset(zone, "(i - 40)") + " <> " + offset(zone, "(i + 40)");
    live_these("SELECT * FROM generate_series(-30, 24 * 380, 3) i WHERE i < 24 * 5" + changes);
  }
  void live_these(const std::string& hours) {
    database.query(
        "INSERT INTO tocsin.job_count_delta (type_id, n, detail, at, event) SELECT " + std::to_string(type_id) +
        ", 1 + abs(i) % 7, 0, date_trunc('hour', now()) - i * interval '1 hour' + i % 4 * interval '15 minutes', 1 + "
        "abs(i) % 8 FROM (" +
        hours + ") i (i)");
    database.query("UPDATE tocsin.job_count_delta SET type_id = " + std::to_string(other_type) + " WHERE n = 7");
    fold();
    const WallTime hour(std::chrono::hours(database.number("SELECT extract(epoch FROM now())::bigint / 3600")));
    std::vector<ReportHistogram> all;
    for (const auto& row : database.query(hours)) {
      const int i = row[0].as<int>();
      all.push_back(histogram(type_id, {abs(i) % 50, 2 * abs(i) % 70, 5}));
      all.back().slot = hour - std::chrono::hours(i) + i % 4 * std::chrono::minutes(15);
    }
    must(maintenance.flush_histograms(1, ++flushes_, all));
  }
  void keep_all() {
    while (must(maintenance.keep_zone_days())) {
    }
  }
  std::string days(const std::string& zone) {
    return database
        .query("SELECT string_agg(r::text, E'\n' ORDER BY slot, biz_type) FROM tocsin.report_day_at('" + zone +
               "') r")[0][0]
        .c_str();
  }
  // The same from nothing but quarters, one by one.
  std::string days_by_hand(const std::string& zone) {
    return database
        .query(
            "WITH n AS (SELECT date_trunc('day', slot, '" + zone +
            "') AS slot, type_id, sum(created)::bigint AS created, sum(done)::bigint AS done, sum(cancelled)::bigint "
            "AS cancelled, sum(dead)::bigint AS dead, sum(dropped_late)::bigint AS dropped_late, "
            "sum(revived)::bigint AS revived, sum(attempts)::bigint AS attempts, sum(retried)::bigint AS retried, "
            "max(max_ms) AS max_ms FROM tocsin.report_slot WHERE grain = 1 GROUP BY 1, 2), h AS (SELECT "
            "date_trunc('day', slot, '" +
            zone +
            "') AS slot, type_id, tocsin.histogram_quantiles(tocsin.histogram_concat(buckets)) AS p FROM "
            "tocsin.report_histogram WHERE kind = 0 AND grain = 1 GROUP BY 1, 2) SELECT string_agg(r::text, E'\n' "
            "ORDER BY slot, biz_type) FROM (SELECT slot, t.name AS biz_type, created, done, cancelled, dead, "
            "dropped_late, revived, attempts, retried, least(p[1], max_ms), least(p[2], max_ms), least(p[3], "
            "max_ms), max_ms FROM n LEFT JOIN h USING (slot, type_id) JOIN tocsin.biz_type t USING (type_id)) r")[0][0]
        .c_str();
  }
  void expect_right(const std::string& when) {
    for (const char* zone : kZones) {
      std::istringstream found(days(zone)), wanted(days_by_hand(zone));
      for (std::string row, right; std::getline(wanted, right);) {
        ASSERT_TRUE(std::getline(found, row)) << zone << ' ' << when << ": missing " << right;
        ASSERT_EQ(row, right) << zone << ' ' << when;
      }
      std::string more;
      ASSERT_FALSE(std::getline(found, more)) << zone << ' ' << when << ": " << more;
    }
  }
  TypeId other_type = 0;
  std::int64_t flushes_ = 0;
};

TEST_F(DaysOfZones, StoredAndComputedNumbersAgreeAlsoAfterLateEvents) {
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.report_day_at('Europe/Berlin')"), 0);
  live_a_year();  // and some of the next day: the clock was set back
  expect_right("added up");
  EXPECT_TRUE(must(maintenance.keep_zone_days()));
  expect_right("kept in part");
  keep_all();
  EXPECT_GT(database.number("SELECT count(*) FROM tocsin.report_zone_day"), 500);
  expect_right("kept");
  live_hours(24 * 2, 24 * 2 + 40, 3);
  expect_right("after events that came late");
  EXPECT_TRUE(must(maintenance.keep_zone_days()));
  expect_right("kept again in part");
  keep_all();
  expect_right("kept again");
}

TEST_F(DaysOfZones, AreReadFromStoredRowsUntilTheirSlotsChange) {
  live_hours(0, 24 * 8);
  keep_all();
  database.query("UPDATE tocsin.report_zone_day SET created = created + 1000000");
  const std::string read =
      "SELECT count(*) FROM tocsin.report_day_at('Asia/Kathmandu') WHERE created > 1000000 AND biz_type = "
      "'order.unpaid'";
  const auto kept = database.number(read);
  EXPECT_GE(kept, 5);
  live_hours(24 * 4 + 5, 24 * 4 + 5);  // one slot: two days of a zone may lie in its UTC day and the next
  EXPECT_LT(database.number(read), kept);
  EXPECT_GE(database.number(read), kept - 3);
}

TEST_F(DaysOfZones, AreNotUsedWhenTheyAreOlderThanTheirSlots) {
  live_hours(0, 24 * 5);
  // The keeper has read the version; then events come; then it reads the numbers, or dies.
  pqxx::connection connection(database.url());
  {
    pqxx::work tx(connection);
    tx.exec("SELECT tocsin.keep_zone_days()");
    tx.abort();
  }
  expect_right("after a keeper that died");
  keep_all();
  database.query("UPDATE tocsin.report_zone_start SET version = version - 1");
  database.query("UPDATE tocsin.report_zone_day SET created = 0");
  expect_right("with numbers of an older version");
}

TEST_F(DaysOfZones, OfARangeAreWhole) {
  live_hours(0, 24 * 10);
  const std::string all = "SELECT created FROM tocsin.report_day_at('Europe/Berlin') WHERE biz_type = 'order.unpaid' ";
  const std::string some =
      "SELECT created FROM tocsin.report_day_at('Europe/Berlin', now() - interval '5 days', now() - interval '2 days') "
      "WHERE biz_type = 'order.unpaid' ";
  const auto found = database.query(some + "ORDER BY slot");
  const auto wanted = database.query(all +
                                     "AND slot >= now() - interval '5 days' AND slot < now() - interval '2 days' "
                                     "ORDER BY slot");
  ASSERT_EQ(found.size(), 3U);
  ASSERT_EQ(wanted.size(), found.size());
  for (pqxx::result::size_type i = 0; i < 3; ++i) EXPECT_EQ(found[i][0].as<int>(), wanted[i][0].as<int>());
  for (const char* range :
       {"'infinity', 'infinity'", "'-infinity', '-infinity'", "'infinity'", "now(), now() - interval '9 days'"})
    EXPECT_EQ(database.number(std::string("SELECT count(*) FROM tocsin.report_day_at('UTC', ") + range + ")"), 0);
}

TEST_F(DaysOfZones, ComeWithTheirHistogramsToBeMerged) {
  live_hours(0, 24 * 6);
  keep_all();
  Session reading{SessionConfig{database.url(), "test", 15'000, 50, false}};
  PgReportStore reports(reading, 8);
  for (const char* zone : {"Europe/Berlin", "Asia/Kathmandu"}) {
    ReportQuery query;
    query.report = Report::day;
    query.biz_type = "order.unpaid";
    query.tz = zone;
    query.limit = 100;
    const auto rows = must(reports.report(query));
    EXPECT_EQ(static_cast<std::int64_t>(rows.size()),
              database.number(std::string("SELECT count(*) FROM tocsin.report_day_at('") + zone +
                              "') WHERE biz_type = 'order.unpaid'"));
    pqxx::connection connection(database.url());
    for (const std::string& row : rows) {
      pqxx::work tx(connection);
      // A day without starts has no histogram.
      EXPECT_TRUE(
          tx.exec("SELECT (d.p50_ms, d.p99_ms) IS NOT DISTINCT FROM (least(q[1], d.max_ms), least(q[3], d.max_ms)) "
                  "AND (q[1] IS NULL) = (d.max_ms IS NULL) FROM (SELECT " +
                  tx.quote(row) +
                  "::jsonb) j (j) CROSS JOIN LATERAL tocsin.histogram_quantiles(ARRAY(SELECT b::bigint "
                  "FROM jsonb_array_elements_text(coalesce(nullif(j -> 'buckets', 'null'), '[]')) b)) q "
                  "JOIN tocsin.report_day_at('" +
                  zone + "') d ON d.slot = (j ->> 'slot')::timestamptz AND d.biz_type = j ->> 'biz_type'")[0][0]
              .as<bool>())
          << row;
    }
  }
}

}  // namespace
}  // namespace tocsin
