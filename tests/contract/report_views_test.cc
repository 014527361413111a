// What readers of the reports rely on: the columns of the views, and how long rows are kept. On PostgreSQL alone.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "contract/report_tables.h"

namespace tocsin {
namespace {

class ReportViews : public ReportTables {
 protected:
  // "name type, name type, ..." of a view, in order.
  std::string columns_of(const std::string& view) {
    const auto none = database.query("SELECT * FROM tocsin." + view + " LIMIT 0");
    std::string text;
    for (pqxx::row::size_type i = 0; i < none.columns(); ++i) {
      const std::string type =
          database.query("SELECT format_type(" + std::to_string(none.column_type(i)) + ", NULL)")[0][0].c_str();
      text += (i == 0 ? "" : ", ") + std::string(none.column_name(i)) + " " +
              (type == "timestamp with time zone" ? "timestamptz"
               : type == "double precision"       ? "double"
                                                  : type);
    }
    return text;
  }
};

// They are a contract with other people's SQL: columns may be added at the end, not renamed, moved or retyped.
TEST_F(ReportViews, KeepTheOrderAndTypesOfTheirColumns) {
  const std::string events =
      "slot timestamptz, biz_type text, created bigint, done bigint, cancelled bigint, dead bigint, dropped_late "
      "bigint, "
      "revived bigint, attempts bigint, retried bigint, p50_ms double, p90_ms double, p99_ms double, max_ms double";
  const std::map<std::string, std::string> views = {
      {"report_hour", events},
      {"report_day", events},
      {"report_day_at('Europe/Berlin')", events},
      {"report_lateness",
       "slot timestamptz, biz_type text, n bigint, p50_ms double, p90_ms double, p99_ms double, max_ms double"},
      {"report_duration",
       "slot timestamptz, biz_type text, outcome text, n bigint, p50_ms double, p90_ms double, p99_ms double, max_ms "
       "double"},
      {"report_slo",
       "biz_type text, target_ms double, target_share double, days bigint, n bigint, missed bigint, share double, "
       "budget_left double, is_met boolean"},
      {"report_dead",
       "slot timestamptz, biz_type text, reason text, n bigint, first_at timestamptz, last_at timestamptz, "
       "sample_job_id "
       "bigint"},
      {"report_outcome",
       "created_day timestamptz, biz_type text, created bigint, done bigint, cancelled bigint, dead bigint, open "
       "bigint"},
      {"report_delay", "biz_type text, from_ms double, to_ms double, n bigint"},
      {"horizon",
       "slot timestamptz, width text, biz_type text, n bigint, low bigint, high bigint, is_exact boolean, counted_at "
       "timestamptz"},
      {"backlog",
       "biz_type text, due bigint, oldest_due_at timestamptz, oldest_age_ms double, waits_for text, is_exact boolean"},
      {"audit",
       "at timestamptz, actor text, role text, address text, action text, target text, filter jsonb, matched bigint, "
       "changed bigint, reason text"}};
  EXPECT_EQ(views.size(), 12U);
  for (const auto& [view, columns] : views) EXPECT_EQ(columns_of(view), columns) << view;
}

struct KeptTable {
  const char* name;
  const char* time;    // the column that says how old a row is
  const char* values;  // of a row, in the order of the table; {} is its time
};

constexpr KeptTable kKept[] = {
    {"report_slot", "slot", "(grain, slot, type_id) VALUES (1, {}, 1)"},
    {"report_zone_start", "slot", "(slot, version) VALUES ({}, 1)"},
    {"report_zone_day", "slot",
     "(slot, type_id, created, done, cancelled, dead, dropped_late, revived, attempts, retried) VALUES ({}, 1, 1, 1, "
     "1, "
     "1, 1, 1, 1, 1)"},
    {"report_histogram", "slot", "(kind, grain, slot, type_id, buckets) VALUES (0, 1, {}, 1, '{1}')"},
    {"report_duration_hour", "slot", "VALUES ({}, 1, 2, 1, 1, 1, 1, 1)"},
    {"report_death", "slot", "VALUES ({}, 1, 'why', 1, {}, {}, 1)"},
    {"report_created_day", "day", "(day, type_id) VALUES ({}, 1)"},
    {"report_delay_day", "day", "VALUES ({}, 1, 1, 1)"},
    {"audit_log", "at", "(at, actor, role, action) VALUES ({}, 'a', 'admin', 'b')"},
    {"report_flush", "flushed_at", "(node_id, seq, flushed_at) VALUES ({n}, 1, {})"}};

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

TEST_F(ReportViews, RowsOfEveryTableAreKeptForFourHundredDays) {
  for (const KeptTable& table : kKept) {
    for (const int days : {1, 399, 402}) {
      const std::string age = "now() - interval '" + std::to_string(days) + " days'";
      const std::string row = replaced(replaced(table.values, "{}", age), "{n}", std::to_string(days));
      database.query("INSERT INTO tocsin." + std::string(table.name) + " " + row);
    }
  }
  database.query(
      "INSERT INTO tocsin.report_slot (grain, slot, type_id) SELECT 3, date_trunc('day', now()) - d * interval '1 day',"
      " 1 FROM generate_series(0, 401) d");
  ASSERT_TRUE(maintenance.forget_old_reports());
  database.query("DELETE FROM tocsin.report_slot WHERE grain = 3");
  for (const KeptTable& table : kKept) {
    const std::string rows = "SELECT count(*) FROM tocsin." + std::string(table.name);
    EXPECT_EQ(database.number(rows), 2) << table.name;
    EXPECT_EQ(database.number(rows + " WHERE " + table.time + " < now() - interval '401 days'"), 0) << table.name;
  }
}

TEST_F(ReportViews, NoTableOfReportsIsKeptForEver) {
  std::set<std::string> named, found;
  for (const KeptTable& table : kKept) named.insert(table.name);
  for (const auto& row :
       database.query("SELECT relname FROM pg_class c WHERE relnamespace = 'tocsin'::regnamespace AND "
                      "relkind IN ('r', 'p') AND NOT relispartition AND relname ~ '^(report|audit)_'"))
    found.insert(row[0].c_str());
  EXPECT_EQ(found, named);
}

}  // namespace
}  // namespace tocsin
