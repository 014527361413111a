#include "postgres/pg_bulk_store.h"

#include <algorithm>
#include <utility>

#include "ports/row_refusal.h"
#include "postgres/duplicate_ids.h"
#include "postgres/job_conditions.h"
#include "postgres/part_writer.h"
#include "postgres/sql_text.h"
#include "postgres/values.h"
#include "postgres/work_errors.h"

namespace tocsin {
namespace {

constexpr int kPageRows = 20'000;            // read per batch at most, in some 30 ms
constexpr std::size_t kMostLocked = 10'000;  // remembered for a second visit; the rest is missed

const char* bulk_table(bool is_live) { return is_live ? "tocsin.job_live" : "tocsin.job_history_dead"; }

std::optional<std::string> pg_time(const std::optional<WallTime>& time) {
  if (!time) return {};
  return to_pg(*time);
}

std::optional<std::int64_t> microseconds(const std::optional<Duration>& duration) {
  if (!duration) return {};
  return duration->count();
}

Bulk bulk_from(const pqxx::row& row) {
  Bulk bulk;
  BulkRequest& request = bulk.request;
  bulk.bulk_id = row[0].as<std::int64_t>();
  request.action = bulk_action_from(row[1].c_str()).value();
  bulk.state = bulk_state_from(row[2].c_str()).value();
  request.filter_json = row[3].c_str();
  request.filter.biz_id = optional_of<std::string>(row[4]);
  request.filter.type_id = optional_of<TypeId>(row[5]);
  request.filter.from = optional_of<WallTime>(row[6]);
  request.filter.to = optional_of<WallTime>(row[7]);
  request.filter.reason = optional_of<std::string>(row[8]);
  request.action_time = optional_of<WallTime>(row[9]);
  request.delay = optional_of<Duration>(row[10]);
  request.spread = optional_of<Duration>(row[11]);
  request.rate_per_s = optional_of<double>(row[12]);
  request.reason = row[13].c_str();
  request.actor = row[14].c_str();
  bulk.matched = row[15].as<std::int64_t>();
  bulk.changed = row[16].as<std::int64_t>();
  bulk.is_stop_requested = row[17].as<bool>();
  bulk.started_at = time_of(row[18]);
  bulk.finished_at = optional_of<WallTime>(row[19]);
  bulk.error = row[20].c_str();
  return bulk;
}

std::optional<Bulk> bulk_of(const pqxx::result& rows) {
  if (rows.empty()) return {};
  return bulk_from(rows[0]);
}

// The progress row, locked for this transaction, so that two nodes that both believe they run the bulk take turns.
struct StoredProgress {
  JobId last_job_id = 0;
  std::int64_t changed = 0;
  bool is_done = false;
  std::vector<JobId> locked;
};

StoredProgress lock_progress(pqxx::transaction_base& tx, std::int64_t bulk_id) {
  tx.exec_params0("INSERT INTO tocsin.bulk_progress (bulk_id) VALUES ($1::bigint) ON CONFLICT DO NOTHING", bulk_id);
  const auto row = tx.exec_params1(
      "SELECT last_job_id, changed, is_done, locked FROM tocsin.bulk_progress WHERE bulk_id = $1::bigint FOR UPDATE",
      bulk_id);
  return {row[0].as<JobId>(), row[1].as<std::int64_t>(), row[2].as<bool>(),
          numbers_from_array<JobId>({row[3].c_str(), row[3].size()})};
}

void write_progress(pqxx::transaction_base& tx, std::int64_t bulk_id, const StoredProgress& progress) {
  const auto written = tx.exec_params(sql::statement("bulk_progress_write"), bulk_id, progress.last_job_id,
                                      progress.changed, progress.is_done, array_of(progress.locked));
  if (written.affected_rows() != 1) throw Refused("the progress of the bulk operation is gone");
}

// Locks the jobs of `ids` that still match and that no other transaction has locked.
std::vector<JobId> lock_jobs(pqxx::transaction_base& tx, BulkAction action, const std::string& matches,
                             const std::vector<JobId>& ids) {
  const char* const name = action == BulkAction::retry ? "bulk_lock_dead" : "bulk_lock_live";
  return column_of<JobId>(tx.exec_params(sql::statement(name, {{"matches", matches}}), array_of(ids)));
}

std::vector<Candidate> candidates_in(const pqxx::result& rows) {
  std::vector<Candidate> jobs;
  for (const auto& row : rows) jobs.push_back({row[0].as<JobId>(), row[1].as<TypeId>(), time_of(row[2])});
  return jobs;
}

pqxx::result reschedule(pqxx::transaction_base& tx, const Bulk& bulk, const std::string& ids) {
  const BulkRequest& request = bulk.request;
  const WallTime to = request.action_time.value_or(bulk.started_at + request.delay.value_or(Duration(0)));
  return tx.exec_params(sql::statement("bulk_reschedule"), ids, to_pg(to),
                        request.spread.value_or(Duration(0)).count());
}

struct Applied {
  std::int64_t changed = 0;
  std::vector<Candidate> due;
};

// Whether one job may be the reason of the Error of a change. Its row is locked by this transaction already, so a lock
// that was not free is that of a table, which all jobs wait for; but for retries, see wait_for_keys_alone().
bool may_be_one_job(const Error& error, BulkAction action) {
  return is_refused_row(error) || (error.field == kLocked && action == BulkAction::retry);
}

// From now on the transaction waits only for keys of jobs, and for each kKeyLockWait at most.
void wait_for_keys_alone(pqxx::transaction_base& tx, const std::vector<JobId>& ids) {
  tx.exec0(sql::statement("lock_tables_of_retries"));
  tx.exec_params(sql::statement("bulk_lock_types"), array_of(ids));
  tx.exec_params1(sql::statement("lock_wait"), kKeyLockWait);
}

// REQUIRES: the rows are locked by this transaction.
Applied apply(pqxx::transaction_base& tx, const Bulk& bulk, const std::vector<JobId>& ids) {
  const std::string array = array_of(ids);
  const BulkAction action = bulk.request.action;
  if (action == BulkAction::cancel)
    return {tx.exec_params1(sql::statement("bulk_cancel"), array)[0].as<std::int64_t>(), {}};
  auto due = candidates_in(action == BulkAction::reschedule ? reschedule(tx, bulk, array)
                           : action == BulkAction::run      ? tx.exec_params(sql::statement("bulk_run"), array)
                                                            : tx.exec_params(sql::statement("bulk_retry"), array));
  return {static_cast<std::int64_t>(due.size()), std::move(due)};
}

// A retry leaves jobs of removed types only. Throws Busy if it left one whose type is there: its removal was undecided
// then, and may be undecided still or given up. The batch is repeated, so that the bulk misses no such job.
void require_left_are_removed(pqxx::transaction_base& tx, const std::vector<JobId>& ids) {
  if (!tx.exec_params(sql::statement("bulk_left_dead"), array_of(ids)).empty())
    throw Busy("the removal of a type is undecided");
}

}  // namespace

struct PgBulkStore::Page {
  std::vector<JobId> matching;
  JobId last_job_id = 0;  // everything up to it has been read
  bool is_last = false;
};

// ---- control database

Result<std::optional<std::string>> PgBulkStore::placement() {
  using Placement = std::optional<std::string>;
  return session_.read<Placement>([](pqxx::nontransaction& tx) -> Placement {
    const auto row = tx.exec1(sql::statement("bulk_placement"));
    return row[1].as<bool>() ? Placement() : Placement(row[0].c_str());
  });
}

Result<std::optional<Bulk>> PgBulkStore::start(const BulkRequest& request, std::int64_t matched, NodeId node,
                                               Duration lease, const std::string& placement) {
  return session_.transact<std::optional<Bulk>>([&](pqxx::work& tx) {
    tx.exec1(sql::statement("placement_lock"));
    const BulkFilter& filter = request.filter;
    return bulk_of(tx.exec_params(sql::statement("bulk_start"), std::string(to_string(request.action)),
                                  request.filter_json, filter.biz_id, filter.type_id, pg_time(filter.from),
                                  pg_time(filter.to), filter.reason, pg_time(request.action_time),
                                  microseconds(request.delay), microseconds(request.spread), request.rate_per_s,
                                  request.reason, request.actor, matched, node, lease.count(), placement));
  });
}

Result<std::optional<Bulk>> PgBulkStore::find(std::int64_t bulk_id) {
  return session_.read<std::optional<Bulk>>(
      [&](pqxx::nontransaction& tx) { return bulk_of(tx.exec_params(sql::statement("bulk_find"), bulk_id)); });
}

Result<std::vector<Bulk>> PgBulkStore::list(int limit) {
  return session_.read<std::vector<Bulk>>([&](pqxx::nontransaction& tx) {
    std::vector<Bulk> bulks;
    for (const auto& row : tx.exec_params(sql::statement("bulk_list"), limit)) bulks.push_back(bulk_from(row));
    return bulks;
  });
}

Result<std::optional<Bulk>> PgBulkStore::request_stop(std::int64_t bulk_id) {
  auto stopped = session_.write<int>([&](pqxx::nontransaction& tx) {
    tx.exec_params0(sql::statement("bulk_request_stop"), bulk_id);
    return 0;
  });
  if (!stopped) return stopped.error();
  return find(bulk_id);
}

Result<std::optional<Bulk>> PgBulkStore::take_over(NodeId node, Duration lease) {
  return take_over_idle({}, node, lease);
}

Result<std::optional<Bulk>> PgBulkStore::take_over(std::int64_t bulk_id, NodeId node, Duration lease) {
  return take_over_idle(bulk_id, node, lease);
}

Result<std::optional<Bulk>> PgBulkStore::take_over_idle(std::optional<std::int64_t> bulk_id, NodeId node,
                                                        Duration lease) {
  return session_.write<std::optional<Bulk>>([&](pqxx::nontransaction& tx) {
    return bulk_of(tx.exec_params(sql::statement("bulk_take_over"), node, lease.count(), bulk_id));
  });
}

Result<std::optional<Bulk>> PgBulkStore::keep(std::int64_t bulk_id, NodeId node, std::int64_t changed, Duration lease) {
  return session_.write<std::optional<Bulk>>([&](pqxx::nontransaction& tx) {
    return bulk_of(tx.exec_params(sql::statement("bulk_keep"), bulk_id, node, changed, lease.count()));
  });
}

Result<bool> PgBulkStore::finish(const Bulk& bulk, NodeId node) {
  return session_.write<bool>([&](pqxx::nontransaction& tx) {
    const auto ended = tx.exec_params(sql::statement("bulk_finish"), bulk.bulk_id, node,
                                      std::string(to_string(bulk.state)), bulk.changed, bulk.error);
    return ended.affected_rows() == 1;
  });
}

// ---- every database

std::string PgBulkStore::conditions(const BulkFilter& filter, pqxx::transaction_base& tx, bool is_live) const {
  JobConditions conditions(tx, is_live, shards_);
  conditions.add_common(filter);
  if (filter.reason) conditions.add_text("tocsin.death_reason(j.errors -> -1 ->> 'message') = ?", *filter.reason);
  return conditions.sql();
}

Result<std::int64_t> PgBulkStore::count(const BulkRequest& request) {
  return session_.read<std::int64_t>([&](pqxx::nontransaction& tx) {
    const BulkFilter& filter = request.filter;
    const std::string status = std::to_string(static_cast<int>(status_changed_by(request.action)));
    const bool is_live = request.action != BulkAction::retry;
    // Retention takes dead jobs away without their counts.
    if (is_live && filter.type_id && !filter.biz_id && !filter.from && !filter.to && !filter.reason) {
      const std::string sql = sql::statement("bulk_count_type", {{"status", status}});
      return tx.exec_params1(sql, *filter.type_id)[0].as<std::int64_t>();
    }
    const std::string matching = conditions(filter, tx, is_live);
    const auto sql =
        sql::statement("bulk_count", {{"table", bulk_table(is_live)}, {"status", status}, {"conditions", matching}});
    return tx.exec1(sql)[0].as<std::int64_t>();
  });
}

Result<BulkBatch> PgBulkStore::progress(std::int64_t bulk_id) {
  return session_.read<BulkBatch>([&](pqxx::nontransaction& tx) {
    const auto rows =
        tx.exec_params("SELECT changed, is_done FROM tocsin.bulk_progress WHERE bulk_id = $1::bigint", bulk_id);
    if (rows.empty()) return BulkBatch{};
    return BulkBatch{rows[0][0].as<std::int64_t>(), rows[0][1].as<bool>(), {}};
  });
}

Result<std::int64_t> PgBulkStore::close(std::int64_t bulk_id) {
  return session_.write<std::int64_t>([&](pqxx::nontransaction& tx) {
    return tx.exec_params1(sql::statement("bulk_close"), bulk_id)[0].as<std::int64_t>();
  });
}

std::string PgBulkStore::matches_now(const Bulk& bulk, pqxx::transaction_base& tx) const {
  const BulkAction action = bulk.request.action;
  const bool is_live = action != BulkAction::retry;
  const std::string filter = conditions(bulk.request.filter, tx, is_live),
                    status = std::to_string(static_cast<int>(status_changed_by(action))),
                    started_at = tx.quote(to_pg(bulk.started_at)) + "::timestamptz";
  return sql::statement("parts/bulk_matches", {{"status", status},
                                               {"began", is_live ? "gmt_create" : "finished_at"},
                                               {"started_at", started_at},
                                               {"conditions", filter}});
}

PgBulkStore::Page PgBulkStore::read_page(pqxx::transaction_base& tx, const Bulk& bulk, const std::string& matches,
                                         JobId after, int limit) const {
  const BulkRequest& request = bulk.request;
  const bool is_live = request.action != BulkAction::retry;
  JobConditions key(tx, is_live, shards_);
  key.add_biz_id(request.filter.biz_id);
  const std::string last = std::to_string(after), most = std::to_string(limit), page_rows = std::to_string(kPageRows);
  const auto rows = tx.exec(sql::statement("bulk_page", {{"table", bulk_table(is_live)},
                                                         {"after", last},
                                                         {"key", key.sql()},
                                                         {"id", request.filter.biz_id ? "j.job_id + 0" : "j.job_id"},
                                                         {"page_rows", page_rows},
                                                         {"matches", matches},
                                                         {"limit", most}}));
  Page page;
  for (const auto& row : rows) {
    const auto read = row[1].as<std::int64_t>();
    if (row[0].is_null()) continue;
    if (read == 0) {
      page.matching.push_back(row[0].as<JobId>());
    } else {
      page.last_job_id = row[0].as<JobId>();
      page.is_last = read < kPageRows;
    }
  }
  if (page.last_job_id == 0) return {{}, after, true};
  if (page.matching.size() == static_cast<std::size_t>(limit)) {
    page.last_job_id = page.matching.back();
    page.is_last = false;
  }
  return page;
}

PgBulkStore::Try PgBulkStore::try_batch(const Bulk& bulk, int limit, const std::set<JobId>& left_out) {
  std::vector<JobId> mine;
  bool is_second_visit = false, is_changing = false;
  auto batch = session_.transact<BulkBatch>([&](pqxx::work& tx) {
    StoredProgress progress = lock_progress(tx, bulk.bulk_id);
    if (progress.is_done) return BulkBatch{progress.changed, true, {}};
    const std::string matching = matches_now(bulk, tx);
    Page page = read_page(tx, bulk, matching, progress.last_job_id, limit);
    is_second_visit = page.matching.empty() && page.is_last && !progress.locked.empty();
    std::vector<JobId> wanted = page.matching;
    if (is_second_visit) {
      const auto n = std::min(progress.locked.size(), static_cast<std::size_t>(limit));
      wanted.assign(progress.locked.begin(), progress.locked.begin() + static_cast<std::ptrdiff_t>(n));
      progress.locked.erase(progress.locked.begin(), progress.locked.begin() + static_cast<std::ptrdiff_t>(n));
    }
    mine = lock_jobs(tx, bulk.request.action, matching, wanted);
    std::erase_if(mine, [&](JobId job) { return left_out.contains(job); });
    if (!is_second_visit && mine.size() < wanted.size()) {
      for (const JobId job : wanted) {
        if (progress.locked.size() < kMostLocked && !std::ranges::binary_search(mine, job))
          progress.locked.push_back(job);
      }
    }
    Applied applied;
    if (!mine.empty()) {
      if (bulk.request.action == BulkAction::retry) wait_for_keys_alone(tx, mine);
      is_changing = true;
      applied = apply(tx, bulk, mine);
      is_changing = false;
      if (bulk.request.action == BulkAction::retry && applied.changed < std::ssize(mine))
        require_left_are_removed(tx, mine);
    }
    progress.changed += applied.changed;
    progress.last_job_id = page.last_job_id;
    progress.is_done = page.is_last && progress.locked.empty();
    write_progress(tx, bulk.bulk_id, progress);
    return BulkBatch{progress.changed, progress.is_done, std::move(applied.due)};
  });
  if (!batch && !is_changing) mine.clear();
  return {std::move(batch), std::move(mine), is_second_visit};
}

Result<BulkBatch> PgBulkStore::run_batch(const Bulk& bulk, int limit) {
  if (std::exchange(refused_bulk_, bulk.bulk_id) != bulk.bulk_id) refused_in_a_row_.clear();
  std::set<JobId> left_out;  // more than one if another transaction locks or frees jobs meanwhile
  std::optional<Error> refusal;
  for (bool has_freed = false;;) {
    const auto most = std::min(part_size_.most(), static_cast<std::size_t>(limit));
    Try tried = try_batch(bulk, static_cast<int>(most), left_out);
    if (tried.batch) {
      part_size_.note_success();
      if (!tried.changed.empty()) refused_in_a_row_.clear();
      tried.batch->refusal = std::move(refusal);
      return std::move(tried.batch);
    }
    const Error& error = tried.batch.error();
    if (tried.changed.empty() || !may_be_one_job(error, bulk.request.action)) return error;
    if (!has_freed) {
      has_freed = has_freed_ids(session_, error, tried.changed);
      if (has_freed) continue;
    }
    part_size_.note_refused(tried.changed.size());
    if (tried.changed.size() > 1) continue;
    const JobId job = tried.changed.front();
    if (is_refused_row(error)) {
      // On their second visit all jobs may be such that were refused on the first, one here and one there.
      if (!tried.is_second_visit) refused_in_a_row_.insert(job);
      if (!tried.is_second_visit && std::ssize(refused_in_a_row_) > kMostRefusedInARow) return error;
      refusal = error;
    }
    left_out.insert(job);
  }
}

}  // namespace tocsin
