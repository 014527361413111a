#include "postgres/pg_report_store.h"

#include <algorithm>
#include <chrono>

#include "postgres/job_conditions.h"
#include "postgres/job_rows.h"
#include "postgres/sql_text.h"
#include "postgres/values.h"

namespace tocsin {
namespace {

std::string conditions(const JobFilter& filter, pqxx::transaction_base& tx, bool is_live, int shards) {
  JobConditions conditions(tx, is_live, shards);
  conditions.add_common(filter);
  if (filter.status) conditions.add("j.status = ?", std::to_string(static_cast<int>(*filter.status)));
  if (filter.below) conditions.add(filter.biz_id ? "j.job_id + 0 < ?" : "j.job_id < ?", std::to_string(*filter.below));
  if (filter.is_local_only) conditions.add("tocsin.lives_here(j.shard)");
  return conditions.sql();
}

// With `window`: of the newest `window` rows of each table read.
std::string list_statement(const JobFilter& filter, pqxx::transaction_base& tx, int shards, std::optional<int> window) {
  const std::string limit = std::to_string(filter.limit);
  const auto of_table = [&](const char* columns, const std::string& table, bool is_live) {
    JobConditions below(tx, is_live, shards);
    if (filter.below) below.add("j.job_id < ?", std::to_string(*filter.below));
    const std::string rows =
        !window ? table
                : sql::statement("parts/newest_rows",
                                 {{"table", table}, {"below", below.sql()}, {"window", std::to_string(*window)}});
    return sql::statement("parts/list_of_table",
                          {{"columns", sql::statement(columns)},
                           {"table", rows},
                           {"conditions", conditions(filter, tx, is_live, shards)},
                           {"id", filter.biz_id ? "j.job_id + 0" : "j.job_id"},  // as _biz has it
                           {"limit", limit}});
  };
  std::string live, finished;
  if (!filter.status || !is_final(*filter.status)) live = of_table("parts/live_columns", "tocsin.job_live", true);
  if (!filter.status || is_final(*filter.status)) {
    const std::string table =
        "tocsin.job_history" + (filter.status ? "_" + std::string(to_string(*filter.status)) : "");
    finished = of_table("parts/history_columns", table, false);
  }
  const bool is_both = !live.empty() && !finished.empty();
  const std::string rows =
      is_both ? sql::statement("parts/list_of_both", {{"live", live}, {"finished", finished}}) : live + finished;
  return sql::statement(
      "list_jobs", {{"rows", rows}, {"limit", limit}, {"most_bytes", std::to_string(ReportStore::kMostBytesOfList)}});
}

// Both reads of a list together have the time of one statement.
std::string rest_of_time(int limit_ms, std::chrono::steady_clock::time_point begun) {
  if (limit_ms == 0) return "";
  const auto spent = std::chrono::ceil<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begun);
  const auto rest_ms = std::max<std::int64_t>(1, limit_ms - spent.count());
  return sql::set_local("statement_timeout", std::to_string(rest_ms));
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

Result<JobList> PgReportStore::list(const JobFilter& filter) {
  // Without a business key no index leads to the jobs. Jobs of a common type are found among the newest rows of their
  // table, without relying on the planner, which knows nothing of a day's table before it is analyzed. Only for a rare
  // type all rows are read.
  constexpr int kWindow = 2'000;
  const auto read = [&](const std::string& settings, std::optional<int> window) {
    return session_.read<JobList>([&](pqxx::nontransaction& tx) {
      JobList list;
      const auto rows = tx.exec(settings + list_statement(filter, tx, shards_, window));
      for (const auto& row : rows) list.jobs.push_back(job_from_row(row));
      list.is_cut = !rows.empty() && rows.back()["bytes"].as<std::int64_t>() >= ReportStore::kMostBytesOfList;
      return list;
    });
  };
  // Not all jobs of the key, to be sorted then, where the planner takes them for few.
  if (filter.biz_id)
    return read("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off; ", {});
  if (!filter.status) return read("", {});
  const auto begun = std::chrono::steady_clock::now();
  auto newest = read("", kWindow);
  if (!newest || newest->is_cut || std::ssize(newest->jobs) >= filter.limit) return newest;
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
