// Tables and statistics as the plan tests need them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <pqxx/pqxx>
#include <string>
#include <utility>
#include <vector>

#include "postgres/pg_report_store.h"
#include "postgres/queries.h"
#include "postgres/session.h"
#include "postgres/sql_text.h"
#include "support/process.h"
#include "support/test_database.h"
#include "tocsin/shard.h"

namespace tocsin {

struct PlannedStatement {
  std::string name;
  std::string sql;
  std::string arguments;
  std::vector<std::string> indexes = {};  // ends of the names of all indexes that it uses
};

constexpr Shard kPlannedShard = 3;
constexpr int kPlannedShards = 16;  // two per table

// Tables as a session of the engine finds them, in three states of knowledge.
class Plans : public ::testing::Test {
 protected:
  enum class Statistics { empty, none, stale, fresh };

  void SetUp() override {
    for (int table = 0; table < sql::kLiveTables; ++table) {
      database.query("ALTER TABLE " + sql::live_table(table) + " SET (autovacuum_enabled = off)");
    }
  }
  void fill(int rows = 40'000) {
    database.query(
        "INSERT INTO tocsin.job_live (job_id, action_time, fire_at, gmt_create, gmt_modified, type_id, shard, "
        "max_attempts, biz_id)"
        " SELECT n * 1024 + n % 16, t, t, now(), now(), 1 + n % 3, n % 16, 16, 'key-' || n"
        " FROM (SELECT n, now() + (n - " +
        std::to_string(rows / 2) + ") * interval '1 second' AS t FROM generate_series(1, " + std::to_string(rows) +
        ") n) x");
  }
  void prepare(Statistics statistics, int rows = 40'000) {
    database.query("TRUNCATE tocsin.job_live");
    if (statistics == Statistics::stale) database.query("ANALYZE");
    if (statistics == Statistics::empty) return;  // as a node finds them that plans before the first job comes
    fill(rows);
    if (statistics == Statistics::fresh) database.query("ANALYZE");
  }
  std::unique_ptr<pqxx::connection> connect(const std::string& more = "") const {
    SessionConfig config;
    config.url = database.url();
    auto connection = std::make_unique<pqxx::connection>(*connection_string(config));
    if (!more.empty()) pqxx::nontransaction(*connection).exec(more);
    return connection;
  }

  // How many jobs the list has, and how many rows it read of tables whose names are like that.
  std::pair<std::size_t, std::int64_t> rows_read_by_list(const JobFilter& filter, const std::string& tables) {
    database.query("SELECT pg_stat_reset()");
    std::size_t listed = 0;
    {
      SessionConfig config{database.url(), "tocsin lists"};
      config.has_pinned_plans = false;
      Session session(config);
      const auto jobs = PgReportStore(session, kPlannedShards).list(filter);
      EXPECT_TRUE(jobs) << jobs.error().message;
      if (jobs) listed = jobs->jobs.size();
    }
    // A session has told what it read when it is gone.
    EXPECT_TRUE(eventually([&] {
      return database.number("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tocsin lists'") == 0;
    }));
    return {listed, database.number("SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)) FROM "
                                    "pg_stat_user_tables WHERE relname LIKE '" +
                                    tables + "'")};
  }

  TestDatabase database{kPlannedShards};
};

// How many pages a statement reads, by its plan.
inline int buffers_of(pqxx::transaction_base& tx, const std::string& statement) {
  const auto rows = tx.exec("EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) " + statement);
  const std::string plan = rows[0][0].as<std::string>();
  int buffers = 0;
  for (const std::string name : {"\"Shared Hit Blocks\": ", "\"Shared Read Blocks\": "})
    buffers += std::stoi(plan.substr(plan.find(name) + name.size()));
  return buffers;
}

}  // namespace tocsin
