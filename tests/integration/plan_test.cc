// The plan of every hot statement, whatever the statistics say: an index that fits, and no more rows than asked.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>

#include "integration/plans.h"

namespace tocsin {
namespace {

std::vector<PlannedStatement> hot_statements() {
  const std::string table = sql::live_table(sql::live_table_of(kPlannedShard)), live = sql::kLive;
  const std::string shards = "'{3,3,5}'", jobs = "'{1027,2051,1029}'", numbers = "'{1,2,3}'";
  const std::string created =
      "'{9999363,9999365}', '{3,5}', '{1,1}', '{\"2040-01-01 00:00:00+00\",NULL}', '{NULL,1000}', '{16,16}', '{a,b}', "
      "'{NULL,NULL}', '{NULL,NULL}'";
  return {
      {"scan",
       sql::statement("scan"),
       "'{3,5}', '{1,1}', '{-infinity,-infinity}', '{0,0}', '{\"2040-01-01 00:00:00+00\",\"2040-01-01 00:00:00+00\"}', "
       "'{512,64}', '{3,5}', '{1,1}', '{9,9}', now(), 100, 0, true",
       {"_due"}},
      {"scan that reads the index through",
       sql::statement("scan"),
       "'{3}', '{1}', '{-infinity}', '{0}', '{\"2040-01-01 00:00:00+00\"}', '{512}', '{3,5}', '{1,1}', '{9,9}', "
       "now(), 100, 1000000000000, false",
       {"_due"}},
      {"overdue", sql::statement("overdue"), "100", {"_due"}},
      {"due_soon", sql::statement("due_soon"), "'{3,5}', 1000000, 100, true", {"_due"}},
      {"due_soon ahead", sql::statement("due_soon"), "'{3,5}', 1000000, 100, false", {"_due"}},
      {"claim",
       sql::over("claim", live),
       shards + ", " + jobs + ", '{30000000,30000000,30000000}', 7, 'n', 'off', " + numbers,
       {"_id"}},
      {"claim in one table",
       sql::over("claim", table),
       "'{3,3}', '{1027,2051}', '{30000000,30000000}', 7, 'n', 'on', '{1,1}'",
       {"_id"}},
      {"claim_due",
       sql::over("claim_due", table),
       "3, 1, '-infinity', 'infinity', 500, 30000000, 7, 'n', 'off', 0",
       {"_due", "_id"}},
      {"fire", sql::over("fire", live), shards + ", " + jobs + ", 'n', " + numbers, {"_id"}},
      {"fire that skips", sql::over("fire_skipping", live), shards + ", " + jobs + ", 'n', " + numbers, {"_id"}},
      {"fire in one table", sql::over("fire", table), "'{3,3}', '{1027,2051}', 'n', '{1,1}'", {"_id"}},
      {"fire in one table that skips",
       sql::over("fire_skipping", table),
       "'{3,3}', '{1027,2051}', 'n', '{1,1}'",
       {"_id"}},
      {"fire_due", sql::over("fire_due", table), "3, 1, '-infinity', 'infinity', 500, 'n', 0", {"_due", "_id"}},
      {"drop_too_late", sql::over("drop_too_late", table), "3, 1, now(), 500, 'n', 0", {"_due", "_id"}},
      {"claimed_with", sql::over("claimed_with", live), shards + ", " + jobs + ", 7", {"_id"}},
      {"claimed_with of a lane", sql::over("claimed_with_lane", table), "3, 1, 7, now()", {"_due"}},
      {"finish",
       sql::over("finish", live),
       shards + ", " + jobs + ", " + numbers + ", '{2,4,0}', '{0,0,1000}', '{a,b,c}', 'n'",
       {"_id"}},
      {"finish in one table",
       sql::over("finish", table),
       "'{3,3}', '{1027,2051}', '{1,2}', '{2,1}', '{0,0}', '{a,b}', 'n'",
       {"_id"}},
      {"finish_leased",
       sql::statement("finish_leased"),
       shards + ", " + jobs + ", " + numbers + ", '{2,4,0}', '{0,0,1000}', '{a,b,c}', 'n'",
       {"_id"}},
      {"retry", sql::statement("retry"), "'{1027,1029}'", {"_id"}},
      {"leased", sql::statement("leased"), shards + ", " + jobs + ", " + numbers, {"_id"}},
      {"extend",
       sql::statement("extend"),
       shards + ", " + jobs + ", " + numbers + ", '{30000000,30000000,30000000}'",
       {"_id"}},
      {"still_claimed", sql::statement("still_claimed"), shards + ", " + jobs + ", " + numbers, {"_id"}},
      {"mark_dead", sql::statement("mark_dead"), shards + ", " + jobs, {"_id"}},
      {"create", sql::statement("create"), created + ", false, '{1}'", {}},
      {"create_keyed",
       sql::statement("create_keyed"),
       created + ", '{k,k}', '{\"in 1\",\"in 1\"}', '{NULL,NULL}', NULL, '{1}'",
       {}},
      {"keys_in_history", sql::statement("keys_in_history"), "'{1,1}', '{a,b}', '{k,k}'", {"_key"}},
      {"find_by_key",
       sql::statement("find_by_key"),
       "'{1027,1029}', '{3,5}', '{1,1}', '{a,b}', '{k,k}', '{x,x}', '{NULL,NULL}', '{NULL,NULL}'",
       {"_key"}},
      {"update_existing",
       sql::statement("update_existing"),
       shards + ", " + jobs +
           ", '{NULL,NULL,NULL}', '{1000,1000,1000}', '{NULL,NULL,NULL}', '{3,3,3}', '{x,x,x}', '{NULL,NULL,NULL}', "
           "'{replace,earliest,latest}'",
       {"_id"}},
      {"still_pending", sql::statement("still_pending"), shards + ", " + jobs, {"_id"}},
      {"undo_create", sql::statement("undo_create"), shards + ", " + jobs, {"_id"}},
      {"cancel together", sql::cancel(sql::LockPolicy::together), shards + ", " + jobs, {"_id"}},
      {"cancel that skips", sql::cancel(sql::LockPolicy::skipping), shards + ", " + jobs, {"_id"}},
      {"cancel that waits", sql::cancel(sql::LockPolicy::waiting), shards + ", " + jobs, {"_id"}},
      {"cancel keys together",
       sql::statement("cancel_keys_together"),
       "'{3,5}', '{a,b}', '{NULL,1}', 100, 1000",
       {"_biz", "_id"}},
      {"cancel keys that skips", sql::statement("cancel_keys"), "'{3,5}', '{a,b}', '{NULL,1}', 100", {"_biz", "_id"}},
      {"state of keys", sql::statement("state_of_keys"), "'{3,5}', '{a,b}', '{NULL,1}', 100, 1000", {"_biz"}},
      {"change together",
       sql::change_pending(sql::LockPolicy::together),
       shards + ", " + jobs + ", '{NULL,NULL,\"2040-01-01 00:00:00+00\"}', '{NULL,1000,NULL}'",
       {"_id"}},
      {"change that skips",
       sql::change_pending(sql::LockPolicy::skipping),
       shards + ", " + jobs + ", '{NULL,NULL,\"2040-01-01 00:00:00+00\"}', '{NULL,1000,NULL}'",
       {"_id"}},
      {"find", sql::statement("find"), shards + ", " + jobs, {"_id"}},
      {"find_live", sql::statement("find_live"), shards + ", " + jobs, {"_id"}},
      {"list_keys",
       sql::statement("list_keys"),
       "'{3,5}', '{a,b}', '{NULL,1}', '{9223372036854775807,4096}', '{101,11}', '{101,1000}', 1000000",
       {"_biz"}},
  };
}

std::string explain(pqxx::connection& connection, const PlannedStatement& statement) {
  pqxx::work tx(connection);
  tx.exec("PREPARE hot AS " + statement.sql);
  std::string plan;
  for (const auto& row : tx.exec("EXPLAIN (COSTS OFF) EXECUTE hot(" + statement.arguments + ")"))
    plan += row[0].as<std::string>() + "\n";
  tx.exec("DEALLOCATE hot");
  return plan;
}

// Every access to a job table is by an index whose name ends as one of those meant.
void expect_indexes(const std::string& plan, const PlannedStatement& statement, const std::string& where) {
  EXPECT_EQ(plan.find("Seq Scan on job_"), std::string::npos) << where << plan;
  EXPECT_EQ(plan.find("Bitmap"), std::string::npos) << where << plan;
  EXPECT_EQ(plan.find("Hash Join"), std::string::npos) << where << plan;
  EXPECT_EQ(plan.find("Merge Join"), std::string::npos) << where << plan;
  EXPECT_EQ(plan.find("->  Sort"), std::string::npos) << where << plan;
  std::set<std::string> used;
  for (std::size_t at = plan.find("using job_"); at != std::string::npos; at = plan.find("using job_", at + 1)) {
    const std::string name = plan.substr(at + 6, plan.find(' ', at + 6) - at - 6);
    const std::string end = name.substr(name.rfind('_'));
    used.insert(end);
    EXPECT_TRUE(std::ranges::find(statement.indexes, end) != statement.indexes.end())
        << where << name << " is not meant\n"
        << plan;
  }
  for (const std::string& index : statement.indexes)
    EXPECT_TRUE(used.contains(index)) << where << index << " is not used\n" << plan;
}

TEST_F(Plans, UseTheIntendedIndexUnderAnyStatistics) {
  const std::pair<Statistics, const char*> states[] = {{Statistics::empty, "empty tables"},
                                                       {Statistics::none, "without statistics"},
                                                       {Statistics::stale, "stale statistics"},
                                                       {Statistics::fresh, "fresh statistics"}};
  for (const auto& [statistics, state] : states) {
    prepare(statistics);
    for (const char* mode : {"force_generic_plan", "force_custom_plan"}) {
      auto connection = connect(std::string("SET plan_cache_mode = ") + mode);
      for (const PlannedStatement& statement : hot_statements()) {
        expect_indexes(explain(*connection, statement), statement, statement.name + ", " + state + ", " + mode + ":\n");
      }
    }
  }
}

TEST_F(Plans, AStatementOverOneTableTouchesNoOther) {
  prepare(Statistics::fresh);
  auto connection = connect();
  for (const PlannedStatement& statement : hot_statements()) {
    const bool is_over_one =
        statement.sql.find(sql::live_table(sql::live_table_of(kPlannedShard))) != std::string::npos;
    if (!is_over_one || statement.name.starts_with("scan")) continue;  // a scan asks for the size of all due indexes
    const std::string plan = explain(*connection, statement);
    for (const int other : {0, 5}) {
      EXPECT_EQ(plan.find(sql::live_table(other).substr(7)), std::string::npos) << statement.name << "\n" << plan;
    }
  }
}

TEST_F(Plans, LanesAreBoundedByTimeInTheIndexNotBehindIt) {
  prepare(Statistics::fresh);
  auto connection = connect();
  for (const PlannedStatement& statement : hot_statements()) {
    const bool is_lane = statement.name == "claim_due" || statement.name == "fire_due";
    const bool is_from_the_beginning = statement.name == "drop_too_late";
    if (!is_lane && !is_from_the_beginning && statement.name != "scan") continue;
    const std::string plan = explain(*connection, statement);
    // The scan's search for lanes comes first and has no bound in time.
    const auto condition = statement.name == "scan" ? plan.rfind("Index Cond: ", plan.find("ROW(fire_at"))
                                                    : plan.find("Index Cond: (((shard + 0) = ");
    ASSERT_NE(condition, std::string::npos) << plan;
    const std::string line = plan.substr(condition, plan.find('\n', condition) - condition);
    EXPECT_NE(line.find("type_id = "), std::string::npos) << statement.name << ": " << line;
    if (!is_from_the_beginning) {
      EXPECT_NE(line.find("ROW(fire_at, (job_id + 0)) > "), std::string::npos) << statement.name << ": " << line;
    }
    EXPECT_NE(line.find(is_lane ? "fire_at <= " : "fire_at < "), std::string::npos) << statement.name << ": " << line;
  }
}

TEST_F(Plans, TheScanReadsNoMoreThanItsPage) {
  prepare(Statistics::fresh);
  auto connection = connect();
  pqxx::work tx(*connection);
  tx.exec("PREPARE hot AS " + sql::statement("scan"));
  std::string plan;
  for (const auto& row :
       tx.exec("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE hot('{3}', '{1}', '{-infinity}', '{0}',"
               " '{\"2040-01-01 00:00:00+00\"}', '{10}', '{}', '{}', '{}', now(), 10, 0, false)")) {
    plan += row[0].as<std::string>() + "\n";
  }
  EXPECT_TRUE(std::regex_search(plan, std::regex("job_live_0003_due on job_live_0003 l_[0-9]+ \\(actual rows=10 ")))
      << plan;
  const std::regex behind_the_index("job_live_[0-9]+_due on[^\n]*\n(?:(?!->)[\\s\\S])*Rows Removed");
  EXPECT_FALSE(std::regex_search(plan, behind_the_index)) << plan;
}

// A function in SQL that is not inlined is planned once per transaction and executed once per row.
TEST_F(Plans, FunctionsOfHotStatementsAreInlined) {
  auto connection = connect();
  pqxx::work tx(*connection);
  std::string plan;
  for (const auto& row : tx.exec("EXPLAIN (VERBOSE, COSTS OFF) SELECT tocsin.shard_of(biz_id, 8), "
                                 "tocsin.day_of(gmt_create), tocsin.created_detail(action_time, gmt_create), "
                                 "tocsin.body_hash(biz_id, attribute, max_attempts), tocsin.death_reason(biz_id) "
                                 "FROM tocsin.job_live"))
    plan += row[0].as<std::string>() + "\n";
  for (const char* name : {"shard_of", "day_of", "created_detail", "delay_bucket", "body_hash", "death_reason"})
    EXPECT_EQ(plan.find(std::string(name) + "("), std::string::npos) << name << " in " << plan;
}

TEST_F(Plans, ABacklogClaimNeverTakesMoreThanItsLimitUnderAnyPlan) {
  const std::vector<std::string> settings{"hashjoin", "mergejoin", "hashagg", "material", "sort"};
  // A small table tempts the planner to read it first and to ask for the locked rows again for every row it reads.
  for (const Statistics statistics : {Statistics::none, Statistics::fresh}) {
    prepare(statistics, 2400);
    auto connection =
        connect("SET enable_seqscan = on; SET enable_bitmapscan = on; SET plan_cache_mode = force_custom_plan");
    connection->prepare("claim_due", sql::over("claim_due", sql::live_table(sql::live_table_of(kPlannedShard))));
    connection->prepare("fire_due", sql::over("fire_due", sql::live_table(sql::live_table_of(kPlannedShard))));
    for (unsigned bits = 0; bits < 1U << settings.size(); ++bits) {
      pqxx::work tx(*connection);
      std::string set;
      for (std::size_t i = 0; i < settings.size(); ++i)
        set += "SET LOCAL enable_" + settings[i] + " = " + (bits & (1U << i) ? "on; " : "off; ");
      tx.exec(set);
      EXPECT_EQ(tx.exec_prepared("claim_due", 3, 1, "-infinity", "infinity", 7, 30'000'000, 42, "n", "off", 0).size(),
                7U)
          << set;
      EXPECT_EQ(tx.exec_prepared("fire_due", 3, 1, "-infinity", "infinity", 7, "n", 0).size(), 7U) << set;
      EXPECT_EQ(tx.exec1("SELECT count(*) FROM tocsin.job_live WHERE status = 1")[0].as<int>(), 7) << set;
      EXPECT_EQ(tx.exec1("SELECT count(*) FROM tocsin.job_history")[0].as<int>(), 7) << set;
    }
  }
}

TEST_F(Plans, AnOldSnapshotDoesNotSlowTheScanAboveTheLowWaterMark) {
  prepare(Statistics::fresh);
  auto report = connect();
  pqxx::work old(*report);
  old.exec("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
  old.exec("SELECT count(*) FROM tocsin.job_live");
  database.query(
      "DELETE FROM tocsin.job_live WHERE fire_at < now() - interval '10 seconds'");  // dead, but not removable
  const auto buffers = [&](const std::string& after) {
    auto connection = connect();
    pqxx::work tx(*connection);
    tx.exec("PREPARE hot AS " + sql::statement("scan"));
    const auto rows = tx.exec(
        "EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) EXECUTE hot('{3}', '{1}', '{\"" +
        after + "\"}', '{0}', '{\"2040-01-01 00:00:00+00\"}', '{10}', '{}', '{}', '{}', now(), 10, 0, false)");
    const std::string plan = rows[0][0].as<std::string>();
    const auto at = plan.find("\"Shared Hit Blocks\": ");
    return std::stoi(plan.substr(at + 21));
  };
  const std::string mark =
      database
          .query(
              "SELECT to_char(min(fire_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US\"+00\"') FROM tocsin.job_live")
              [0][0]
          .c_str();
  buffers("-infinity");  // hint bits and such are written once
  EXPECT_LT(buffers(mark) * 4, buffers("-infinity"));
}

}  // namespace
}  // namespace tocsin
