#include "postgres/pg_report_store.h"

#include <algorithm>
#include <chrono>

#include "postgres/job_rows.h"
#include "postgres/sql_text.h"
#include "postgres/values.h"

namespace tocsin {
namespace {

// The conditions of a filter as SQL with literal values; every value goes through quote() or is a number.
std::string conditions(const JobFilter& filter, pqxx::transaction_base& tx, bool is_live, int shards) {
  std::string sql = "true";
  if (filter.biz_id) {
    sql += " AND j.biz_id = " + tx.quote(*filter.biz_id);
    if (is_live) sql += " AND j.shard = " + std::to_string(shard_of(*filter.biz_id, shards));
  }
  if (filter.type_id) sql += " AND j.type_id = " + std::to_string(*filter.type_id);
  if (filter.status) sql += " AND j.status = " + std::to_string(static_cast<int>(*filter.status));
  if (filter.from) sql += " AND j.action_time >= " + tx.quote(to_pg(*filter.from)) + "::timestamptz";
  if (filter.to) sql += " AND j.action_time < " + tx.quote(to_pg(*filter.to)) + "::timestamptz";
  if (filter.below)
    sql += (filter.biz_id ? " AND j.job_id + 0 < " : " AND j.job_id < ") + std::to_string(*filter.below);
  if (filter.is_local_only) sql += " AND tocsin.lives_here(j.shard)";
  return sql;
}

// The newest jobs that match a filter. With `window`: of the newest `window` rows of each table read.
std::string list_statement(const JobFilter& filter, pqxx::transaction_base& tx, int shards, std::optional<int> window) {
  const std::string newest = " ORDER BY j.job_id DESC LIMIT ";
  const std::string order = filter.biz_id ? " ORDER BY j.job_id + 0 DESC LIMIT " : newest;  // as _biz has it
  std::string sql;
  const auto add = [&](const std::string& columns, const std::string& table, bool is_live) {
    const std::string below = filter.below ? " WHERE j.job_id < " + std::to_string(*filter.below) : "";
    const std::string rows =
        window ? "(SELECT * FROM " + table + " j" + below + order + std::to_string(*window) + ")" : table;
    if (!sql.empty()) sql += " UNION ALL ";
    sql += "(SELECT " + columns + " FROM " + rows + " j WHERE " + conditions(filter, tx, is_live, shards) + order +
           std::to_string(filter.limit) + ")";
  };
  if (!filter.status || !is_final(*filter.status)) add(sql::statement("parts/live_columns"), "tocsin.job_live", true);
  if (!filter.status || is_final(*filter.status)) {
    const std::string table =
        "tocsin.job_history" + (filter.status ? "_" + std::string(to_string(*filter.status)) : "");
    add(sql::statement("parts/history_columns"), table, false);
  }
  return "SELECT * FROM (" + sql + ") j" + newest + std::to_string(filter.limit);
}

// Both reads of a list together have the time of one statement.
std::string rest_of_time(int limit_ms, std::chrono::steady_clock::time_point begun) {
  if (limit_ms == 0) return "";
  const auto spent = std::chrono::ceil<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begun);
  const auto rest_ms = std::max<std::int64_t>(1, limit_ms - spent.count());
  return "SET LOCAL statement_timeout = " + std::to_string(rest_ms) + "; ";
}

}  // namespace

Result<std::optional<Job>> PgReportStore::find(JobId job) {
  return session_.read<std::optional<Job>>([&](pqxx::nontransaction& tx) -> std::optional<Job> {
    const JobId ids[] = {job};
    auto found = find_jobs(session_, tx, ids);
    if (found.empty()) return {};
    return std::move(found.begin()->second);
  });
}

Result<std::vector<Job>> PgReportStore::list(const JobFilter& filter) {
  // Without a business key no index leads to the jobs. Jobs of a common type are found among the newest rows of their
  // table, without relying on the planner, which knows nothing of a day's table before it is analyzed. Only for a rare
  // type all rows are read.
  constexpr int kWindow = 2'000;
  using Jobs = std::vector<Job>;
  const auto read = [&](const std::string& settings, std::optional<int> window) {
    return session_.read<Jobs>([&](pqxx::nontransaction& tx) {
      Jobs jobs;
      const auto rows = tx.exec(settings + list_statement(filter, tx, shards_, window));
      for (const auto& row : rows) jobs.push_back(job_from_row(row));
      return jobs;
    });
  };
  // Not all jobs of the key, to be sorted then, where the planner takes them for few.
  if (filter.biz_id)
    return read("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off; ", {});
  if (!filter.status) return read("", {});
  const auto begun = std::chrono::steady_clock::now();
  auto newest = read("", kWindow);
  if (!newest || std::ssize(*newest) >= filter.limit) return newest;
  return read(rest_of_time(session_.config().statement_timeout_ms, begun), {});
}

Result<std::vector<TypeCount>> PgReportStore::counts() {
  return session_.read<std::vector<TypeCount>>([&](pqxx::nontransaction& tx) {
    std::vector<TypeCount> counts;
    for (const auto& row : exec(tx, session_.prepared("counts"))) {
      counts.push_back({row[0].as<TypeId>(), static_cast<JobStatus>(row[1].as<int>()), row[2].as<std::int64_t>()});
    }
    return counts;
  });
}

Result<std::int64_t> PgReportStore::overdue(int at_most) {
  return session_.read<std::int64_t>(
      [&](pqxx::nontransaction& tx) { return exec1(tx, session_.prepared("overdue"), at_most)[0].as<std::int64_t>(); });
}

Result<std::vector<std::int64_t>> PgReportStore::due_soon(std::span<const Shard> shards, Duration within, int at_most,
                                                          bool is_overdue_counted) {
  return session_.read<std::vector<std::int64_t>>([&](pqxx::nontransaction& tx) {
    return column_of<std::int64_t>(
        exec(tx, session_.prepared("due_soon"), array_of(shards), within.count(), at_most, is_overdue_counted));
  });
}

Result<bool> PgReportStore::has_live_jobs(TypeId type) {
  return session_.read<bool>(
      [&](pqxx::nontransaction& tx) { return tx.exec_params1(sql::statement("has_live_jobs"), type)[0].as<bool>(); });
}

Result<DatabaseInfo> PgReportStore::info() {
  auto name = database_name(session_.config().url);
  if (!name) return name.error();
  return session_.read<DatabaseInfo>([&](pqxx::nontransaction& tx) {
    const auto row =
        tx.exec1("SELECT tocsin.shard_count(), (SELECT max(version) FROM tocsin.migration), clock_timestamp()");
    return DatabaseInfo{*name, row[0].as<int>(), row[1].as<int>(), time_of(row[2])};
  });
}

}  // namespace tocsin
