// The plans of the verbs that name a business key, beside whatever its key and its day have had before.
#include <array>

#include "integration/plans.h"

namespace tocsin {
namespace {

constexpr const char* kUnknownId = "99999747";  // of the shard 3

std::string shard_text(const std::string& key) { return std::to_string(shard_of(key, kPlannedShards)); }

// The verbs of keys: one with a past of 20,000 jobs, one with as many pending jobs, both of the type 1 alone; one of
// many keys with four finished jobs; one without any job; and an id without a job.
std::vector<PlannedStatement> statements_about_keys() {
  const std::string most = "9223372036854775807", id = std::string("'{3}', '{") + kUnknownId + "}'";
  std::vector<PlannedStatement> statements = {
      {"find", sql::statement("find"), id},
      {"find_live", sql::statement("find_live"), id},
      {"list of all types", sql::statement("list_keys"),
       "'{" + shard_text("past") + "}', '{past}', '{NULL}', '{" + most + "}', '{9}', '{9}', 1000000"},
      {"ids_of_key", sql::statement("ids_of_key"), "'past', " + shard_text("past") + ", 2, 10000, 1000"},
      {"ids_of_key, unknown", sql::statement("ids_of_key"),
       "'unknown', " + shard_text("unknown") + ", NULL, 10000, 1000"},
  };
  for (const std::string key : {"past", "crowd", "few-7", "unknown"}) {
    const std::string shard = "'{" + shard_text(key) + "}'", of_key = shard + ", '{" + key + "}', '{2}'";
    const std::vector<PlannedStatement> of_type = {
        {"list_keys", sql::statement("list_keys"), of_key + ", '{" + most + "}', '{101}', '{1000}', 1000000"},
        {"state_of_keys", sql::statement("state_of_keys"), of_key + ", 100, 1000"},
        {"cancel_keys", sql::statement("cancel_keys"), of_key + ", 100"},
        {"cancel_keys_together", sql::statement("cancel_keys_together"), of_key + ", 100, 1000"},
        {"keys_in_history", sql::statement("keys_in_history"), "'{1}', '{" + key + "}', '{none}'"},
        {"find_by_key, its type", sql::statement("find_by_key"),
         "'{1027}', " + shard + ", '{1}', '{" + key + "}', '{none}', '{x}', '{NULL}', '{NULL}'"},
        {"find_by_key, another type", sql::statement("find_by_key"),
         "'{1027}', " + shard + ", '{2}', '{" + key + "}', '{none}', '{x}', '{NULL}', '{NULL}'"}};
    for (PlannedStatement statement : of_type) {
      statement.name += ", " + key;
      statements.push_back(std::move(statement));
    }
  }
  return statements;
}

class PlansOfKeys : public Plans {
 protected:
  // All that has ended did so today. The statistics of done jobs know one key alone.
  void fill_keys(Statistics statistics) {
    database.query("TRUNCATE tocsin.job_live, tocsin.job_history");
    if (statistics == Statistics::stale) database.query("ANALYZE");
    const std::string of_key =
        ", LATERAL (SELECT tocsin.shard_of(key, " + std::to_string(kPlannedShards) + ")) s (shard)";
    const auto write_past = [&](const std::string& numbers, const std::string& key, const std::string& idempotency,
                                JobStatus status) {
      database.query(
          "INSERT INTO tocsin.job_history (job_id, action_time, fire_at, gmt_create, started_at, finished_at, type_id, "
          "shard, status, attempts, max_attempts, biz_id, idempotency_key) SELECT n * 1024 + shard, now(), now(), "
          "now(), now(), now(), 1, shard, " +
          std::to_string(static_cast<int>(status)) + ", 1, 16, key, " + idempotency + " FROM (SELECT n, " + key +
          " AS key FROM generate_series(" + numbers + ") n) k" + of_key);
    };
    write_past("1, 20000", "'past'", "'k-' || n", JobStatus::done);
    write_past("20001, 40000", "'few-' || n % 5000", "NULL", JobStatus::cancelled);
    database.query(
        "INSERT INTO tocsin.job_live (job_id, action_time, fire_at, gmt_create, gmt_modified, type_id, shard, "
        "max_attempts, biz_id, idempotency_key) SELECT n * 1024 + shard, now(), now(), now(), now(), 1, shard, 16, "
        "key, 'k-' || n FROM (SELECT n, 'crowd' AS key FROM generate_series(40001, 60000) n) k" +
        of_key);
    if (statistics == Statistics::fresh) database.query("ANALYZE");
  }
  static constexpr std::array<std::pair<Statistics, const char*>, 3> kStates = {
      {{Statistics::none, "without statistics"},
       {Statistics::stale, "stale statistics"},
       {Statistics::fresh, "fresh statistics"}}};
};

// A day on which much has finished and nothing was analyzed yet, as every midnight begins one; and keys with a past, or
// with many jobs, of another type than the one meant.
TEST_F(PlansOfKeys, CostFollowsTheAnswerNotTheHistoryOfTheKey) {
  for (const auto& [statistics, state] : kStates) {
    fill_keys(statistics);
    for (const char* mode : {"force_generic_plan", "force_custom_plan"}) {
      auto connection = connect(std::string("SET plan_cache_mode = ") + mode);
      for (const PlannedStatement& statement : statements_about_keys()) {
        pqxx::work tx(*connection);
        tx.exec("PREPARE hot AS " + statement.sql);
        const std::string call = "EXECUTE hot(" + statement.arguments + ")";
        buffers_of(tx, call);  // loads the catalog entries
        EXPECT_LT(buffers_of(tx, call), 200) << statement.name << ", " << state << ", " << mode;
        tx.exec("DEALLOCATE hot");
      }
    }
  }
}

// The same for the functions of the SQL interface, in a session whose settings are not ours.
TEST_F(PlansOfKeys, CostIsTheSameBySql) {
  database.query(
      "INSERT INTO tocsin.biz_type (name, handler, ttr_ms, max_attempts, backoff, catch_up) SELECT name, "
      "'{\"kind\":\"noop\"}', 1000, 16, '{\"delays_ms\":[1]}', '{}' FROM unnest('{one,two}'::text[]) name");
  const std::string id = kUnknownId;
  for (const auto& [statistics, state] : kStates) {
    fill_keys(statistics);
    pqxx::connection connection(database.url());
    for (const std::string& call :
         {std::string("cancel_jobs('past', 'two')"), std::string("cancel_jobs('few-7')"),
          std::string("cancel_jobs('unknown')"), "cancel_job(" + id + ")", "reschedule_job(" + id + ", '2040-01-01')",
          std::string("create_job('one', 'past', '2040-01-01', NULL, 'none')"),
          std::string("create_job('two', 'past', '2040-01-01', NULL, 'none')")}) {
      int buffers = 0;
      for (int i = 0; i < 8; ++i) {  // the first calls plan, and load the catalog entries
        pqxx::work tx(connection);
        buffers = buffers_of(tx, "SELECT * FROM tocsin." + call);
      }
      EXPECT_LT(buffers, 200) << call << ", " << state;
    }
  }
}

// A key's jobs of one state: a statement that the planner plans anew each time.
TEST_F(PlansOfKeys, AListByStateReadsOnlyTheRowsItShows) {
  const struct {
    const char* key;
    JobStatus status;
    int most_rows;
  } lists[] = {{"past", JobStatus::done, 1'000},    {"past", JobStatus::dead, 0},
               {"past", JobStatus::pending, 0},     {"few-7", JobStatus::cancelled, 100},
               {"unknown", JobStatus::done, 0},     {"unknown", JobStatus::pending, 0},
               {"crowd", JobStatus::pending, 1'000}};
  for (const auto& [statistics, state] : kStates) {
    fill_keys(statistics);
    for (const auto& [key, status, most_rows] : lists) {
      JobFilter filter;
      filter.biz_id = key;
      filter.status = status;
      EXPECT_LE(rows_read_by_list(filter, "job_%").second, most_rows)
          << key << ", " << to_string(status) << ", " << state;
    }
  }
}

// The newest jobs of a common type come from the end of the index, also on a day without statistics.
TEST_F(Plans, AListOfACommonTypeReadsAboutAsManyRowsAsItShows) {
  database.query(
      "INSERT INTO tocsin.job_history (job_id, action_time, fire_at, gmt_create, started_at, finished_at, type_id, "
      "shard, status, attempts, max_attempts, biz_id) SELECT n * 1024 + n % 16, now(), now(), now(), now(), now(), 1, "
      "n % 16, 2, 1, 16, 'past-' || n FROM generate_series(1, 50000) n");
  for (const bool is_analyzed : {false, true}) {
    if (is_analyzed) database.query("ANALYZE");
    JobFilter filter;
    filter.type_id = 1;
    filter.status = JobStatus::done;
    filter.limit = 100;
    const auto [listed, rows] = rows_read_by_list(filter, "job_history_done_%");
    EXPECT_EQ(listed, 100U);
    EXPECT_LT(rows, 1000);
  }
}

}  // namespace
}  // namespace tocsin
