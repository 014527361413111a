#include "bench/preload.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <pqxx/pqxx>
#include <vector>

#include "base/progress.h"
#include "bench/jobs.h"
#include "bench/lanes.h"
#include "support/server.h"

namespace tocsin::bench {
namespace {

constexpr int kLanes = 4;
constexpr std::size_t kChunk = 50'000;

// What is lost in a crash is written again; sorting in memory is what makes the indexes quick.
constexpr const char* kSession = "SET synchronous_commit = off; SET maintenance_work_mem = '128MB'";

using Statements = std::vector<std::string>;

// Runs each statement in a transaction of its own, several at a time.
void run_all(const std::string& database, const Statements& statements, const std::string& what) {
  Progress progress(what);
  std::mutex mutex;  // guards progress and done
  std::int64_t done = 0;
  run_lanes(kLanes, statements.size(), [&]() -> Work {
    auto connection = std::make_shared<pqxx::connection>(database);
    pqxx::nontransaction(*connection).exec(kSession);
    return [&, connection](std::size_t i) {
      pqxx::nontransaction(*connection).exec(statements[i]);
      const std::scoped_lock lock(mutex);
      progress.show(++done, static_cast<std::int64_t>(statements.size()));
    };
  });
}

Statements column(const std::string& database, const std::string& query, int at = 0) {
  pqxx::connection connection(database);
  pqxx::nontransaction tx(connection);
  Statements values;
  for (const auto& row : tx.exec(query)) values.push_back(row[at].c_str());
  return values;
}

// The tables below a partitioned one.
std::string leaves_of(const std::string& parent) {
  return "SELECT relid::regclass::text FROM pg_partition_tree('" + parent + "') WHERE isleaf";
}

// The indexes of the leaves of one partitioned table, taken away while this exists. Those that hang on an index of the
// parent, or on a constraint, stay.
class WithoutIndexes {
 public:
  WithoutIndexes(std::string database, const std::string& parent) : database_(std::move(database)) {
    const std::string query = "SELECT 'DROP INDEX ' || i.indexrelid::regclass, pg_get_indexdef(i.indexrelid) FROM (" +
                              leaves_of(parent) +
                              ") t (leaf) JOIN pg_index i ON i.indrelid = t.leaf::regclass"
                              " WHERE NOT EXISTS (SELECT 1 FROM pg_inherits h WHERE h.inhrelid = i.indexrelid)"
                              " AND NOT EXISTS (SELECT 1 FROM pg_constraint c WHERE c.conindid = i.indexrelid)"
                              " ORDER BY t.leaf, 1";
    definitions_ = column(database_, query, 1);
    for (const std::string& drop : column(database_, query)) execute(database_, drop);
  }
  void restore() { run_all(database_, definitions_, "making the indexes"); }

 private:
  const std::string database_;
  Statements definitions_;
};

// About the size of attribute_of().
const std::string kAttribute = "jsonb_build_object('run', 'preload', 'i', k.i, 'pad', repeat('x', 150))";

// The type of job number i: one after the other.
std::string type_of_number(int types) {
  const std::string t = std::to_string(types);
  return std::string("t.name = CASE i % ") + t + " WHEN 0 THEN '" + kType + "' ELSE '" + kType + ".' || i % " + t +
         " END";
}

// Jobs first..last by number, each with its key and shard.
std::string numbered(const std::string& key, std::size_t first, std::size_t last, const std::string& further,
                     int types) {
  // OFFSET 0: the hash is computed once per row.
  return "(SELECT i, '" + key + "-' || i AS biz_id, tocsin.shard_of('" + key +
         "-' || i, tocsin.shard_count()) AS shard, " + further + " FROM generate_series(" + std::to_string(first) +
         "::bigint, " + std::to_string(last) + ") i OFFSET 0) k JOIN tocsin.biz_type t ON " + type_of_number(types);
}

std::string count_delta(int status, std::size_t first, std::size_t last, int types) {
  return "WITH c AS (INSERT INTO tocsin.job_count_delta SELECT t.type_id, " + std::to_string(status) +
         ", count(*) FROM generate_series(" + std::to_string(first) + ", " + std::to_string(last) +
         ") i JOIN tocsin.biz_type t ON " + type_of_number(types) + " GROUP BY 1) ";
}

Statements pending_rows(std::size_t n, const std::string& due, int types) {
  Statements statements;
  for (std::size_t first = 1; first <= n; first += kChunk) {
    const std::size_t last = std::min(first + kChunk - 1, n);
    statements.push_back(count_delta(0, first, last, types) +
                         "INSERT INTO tocsin.job_live (job_id, action_time, fire_at, gmt_create, gmt_modified, "
                         "type_id, shard, max_attempts, biz_id, attribute)"
                         " SELECT nextval('tocsin.job_seq') * 1024 + k.shard, k.due, k.due, statement_timestamp(),"
                         " statement_timestamp(), t.type_id, k.shard, t.max_attempts, k.biz_id, " +
                         kAttribute + " FROM " + numbered("preload", first, last, "(" + due + ") AS due", types));
  }
  return statements;
}

Statements finished_rows(std::size_t n, int days, int types) {
  Statements statements;
  const std::size_t per_day = std::max<std::size_t>(n / static_cast<std::size_t>(days), 1);
  for (int day = 1; day <= days; ++day) {
    const std::size_t before = static_cast<std::size_t>(day - 1) * per_day;
    for (std::size_t first = 1; first <= per_day; first += kChunk) {
      const std::size_t last = std::min(first + kChunk - 1, per_day);
      const std::string at = "date_trunc('day', statement_timestamp() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' - " +
                             std::to_string(day) + " * interval '1 day' + (i - " + std::to_string(before) +
                             ") * interval '" + std::to_string(86'000.0 / static_cast<double>(per_day)) + " seconds'";
      statements.push_back(count_delta(2, before + first, before + last, types) +
                           "INSERT INTO tocsin.job_history (job_id, action_time, fire_at, gmt_create, started_at, "
                           "finished_at, type_id, shard, status, attempts, max_attempts, biz_id, node, attribute)"
                           " SELECT nextval('tocsin.job_seq') * 1024 + k.shard, k.at, k.at, k.at - interval '1 hour',"
                           " k.at + interval '1 millisecond', k.at + interval '2 milliseconds', t.type_id, k.shard,"
                           " 2, 1, t.max_attempts, k.biz_id, 'preload', " +
                           kAttribute + " FROM " +
                           numbered("history", before + first, before + last, "(" + at + ") AS at", types));
    }
  }
  return statements;
}

}  // namespace

void write_pending(const std::string& database, std::size_t n, const std::string& due, Indexes indexes, int types) {
  if (n == 0) return;
  const Statements rows = pending_rows(n, due, types);
  if (indexes == Indexes::kept) return run_all(database, rows, "writing jobs");
  WithoutIndexes without(database, "tocsin.job_live");
  run_all(database, rows, "writing jobs");
  without.restore();
}

void write_finished(const std::string& database, std::size_t n, int days, int types) {
  execute(database, "SELECT tocsin.ensure_history((statement_timestamp() AT TIME ZONE 'UTC')::date - " +
                        std::to_string(days) + ", (statement_timestamp() AT TIME ZONE 'UTC')::date - 1)");
  WithoutIndexes without(database, "tocsin.job_history_done");
  run_all(database, finished_rows(n, days, types), "writing history");
  without.restore();
}

void write_finished_today(const std::string& database, std::size_t n) {
  const std::string count = std::to_string(n), keys = std::to_string(std::max<std::size_t>(1, n / 4));
  execute(
      database,
      "WITH c AS (INSERT INTO tocsin.job_count_delta SELECT type_id, 2, " + count +
          " FROM tocsin.biz_type WHERE name = '" + kType +
          "') INSERT INTO tocsin.job_history (job_id, action_time, fire_at, gmt_create, started_at, finished_at, "
          "type_id, shard, status, attempts, max_attempts, biz_id, node, attribute) SELECT "
          "nextval('tocsin.job_seq') * 1024 + k.shard, now(), now(), now(), now(), now(), t.type_id, k.shard, 2, 1, "
          "3, k.biz_id, 'preload', '{\"run\":\"verbs\"}' FROM (SELECT 'finished-' || i % " +
          keys + " AS biz_id, tocsin.shard_of('finished-' || i % " + keys +
          ", tocsin.shard_count()) AS shard FROM generate_series(1, " + count +
          ") i OFFSET 0) k, tocsin.biz_type t WHERE t.name = '" + kType + "'");
}

void settle(const std::string& database) {
  Statements statements;
  for (const char* parent : {"tocsin.job_live", "tocsin.job_history"})
    for (const std::string& leaf : column(database, leaves_of(parent)))
      statements.push_back("VACUUM (ANALYZE) " + leaf);
  for (const char* table : {"tocsin.job_count", "tocsin.job_count_delta", "tocsin.biz_type"})
    statements.push_back(std::string("VACUUM (ANALYZE) ") + table);
  run_all(database, statements, "vacuuming");
  for (const char* parent : {"tocsin.job_live", "tocsin.job_history"})  // of the whole: autovacuum never does
    execute(database, std::string("ANALYZE ") + parent);
  execute(database, "CHECKPOINT");
}

}  // namespace tocsin::bench
