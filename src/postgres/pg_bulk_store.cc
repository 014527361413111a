#include "postgres/pg_bulk_store.h"

#include <algorithm>

#include "postgres/queries.h"
#include "postgres/text.h"

namespace tocsin {
namespace {

constexpr int kPageRows = 20'000;            // read per batch at most, whatever matches: some 30 ms
constexpr std::size_t kMostLocked = 10'000;  // remembered for a second visit; the rest is missed

const char* const kBulkColumns =
    "b.bulk_id, b.action, b.state, b.filter, b.biz_id, b.type_id, b.from_time, b.to_time, b.death_reason, "
    "b.action_time, b.delay_us, b.spread_us, b.rate_per_s, b.reason, b.actor, b.matched, b.changed, "
    "b.is_stop_requested, b.started_at, b.finished_at, b.error";

std::optional<WallTime> maybe_time(const pqxx::field& field) {
  if (field.is_null()) return {};
  return wall_time_from_pg({field.c_str(), field.size()});
}

std::optional<std::string> maybe_text(const pqxx::field& field) {
  if (field.is_null()) return {};
  return std::string(field.c_str(), field.size());
}

std::optional<Duration> maybe_duration(const pqxx::field& field) {
  if (field.is_null()) return {};
  return Duration(field.as<std::int64_t>());
}

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
  request.filter.biz_id = maybe_text(row[4]);
  if (!row[5].is_null()) request.filter.type_id = row[5].as<TypeId>();
  request.filter.from = maybe_time(row[6]);
  request.filter.to = maybe_time(row[7]);
  request.filter.reason = maybe_text(row[8]);
  request.action_time = maybe_time(row[9]);
  request.delay = maybe_duration(row[10]);
  request.spread = maybe_duration(row[11]);
  if (!row[12].is_null()) request.rate_per_s = row[12].as<double>();
  request.reason = row[13].c_str();
  request.actor = row[14].c_str();
  bulk.matched = row[15].as<std::int64_t>();
  bulk.changed = row[16].as<std::int64_t>();
  bulk.is_stop_requested = row[17].as<bool>();
  bulk.started_at = *maybe_time(row[18]);
  bulk.finished_at = maybe_time(row[19]);
  bulk.error = row[20].c_str();
  return bulk;
}

std::optional<Bulk> bulk_of(const pqxx::result& rows) {
  if (rows.empty()) return {};
  return bulk_from(rows[0]);
}

std::string id_array(const std::vector<JobId>& ids) {
  PgArray array;
  for (const JobId id : ids) array.add(id);
  return array.literal();
}

std::vector<JobId> ids_in(const pqxx::result& rows) {
  std::vector<JobId> ids;
  for (const auto& row : rows) ids.push_back(row[0].as<JobId>());
  return ids;
}

// The progress row, locked for this transaction: two nodes that both believe they run the bulk take turns.
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
  const auto written = tx.exec_params(
      "UPDATE tocsin.bulk_progress SET last_job_id = $2::bigint, changed = $3::bigint, is_done = $4::boolean, locked = "
      "$5::bigint[], written_at = clock_timestamp() WHERE bulk_id = $1::bigint",
      bulk_id, progress.last_job_id, progress.changed, progress.is_done, id_array(progress.locked));
  if (written.affected_rows() != 1) throw Refused("the progress of the bulk operation is gone");
}

// Locks those of `ids` that can be changed and that no other transaction holds.
std::vector<JobId> lock_jobs(pqxx::transaction_base& tx, BulkAction action, const std::vector<JobId>& ids) {
  const bool is_live = action != BulkAction::retry;
  const std::string table =
      is_live ? "tocsin.job_live j ON j.shard = (k.job_id & 1023)::smallint AND" : "tocsin.job_history_dead j ON";
  return ids_in(tx.exec_params(
      "SELECT j.job_id FROM unnest($1::bigint[]) k (job_id) JOIN " + table +
          " j.job_id = k.job_id WHERE j.status = " + std::to_string(static_cast<int>(status_changed_by(action))) +
          " ORDER BY j.job_id FOR UPDATE OF j SKIP LOCKED",
      id_array(ids)));
}

std::vector<Candidate> candidates_in(const pqxx::result& rows) {
  std::vector<Candidate> jobs;
  for (const auto& row : rows) jobs.push_back({row[0].as<JobId>(), row[1].as<TypeId>(), *maybe_time(row[2])});
  return jobs;
}

// The new deadline of a job that is rescheduled. A spread places each job by the hash of its id: evenly, and at the
// same instant if a batch is repeated.
std::string new_deadline(const BulkRequest& request, WallTime started_at) {
  const WallTime base = request.action_time.value_or(started_at + request.delay.value_or(Duration(0)));
  const std::string spread_us = std::to_string(request.spread.value_or(Duration(0)).count());
  return "'" + to_pg(base) + "'::timestamptz + ((hashint8(k.job_id)::bigint & 2147483647) * " + spread_us +
         "::double precision / 2147483648) * interval '1 microsecond'";
}

struct Applied {
  std::int64_t changed = 0;
  std::vector<Candidate> due;
};

// REQUIRES: the rows are locked by this transaction.
Applied apply(pqxx::transaction_base& tx, const Bulk& bulk, const std::vector<JobId>& ids) {
  const std::string array = id_array(ids);
  switch (bulk.request.action) {
    case BulkAction::cancel: {
      const auto row = tx.exec_params1(
          "SELECT count(*) FROM (SELECT tocsin.cancel_job(k.job_id) AS result FROM unnest($1::bigint[]) k (job_id)) r "
          "WHERE r.result = 'cancelled'",
          array);
      return {row[0].as<std::int64_t>(), {}};
    }
    case BulkAction::reschedule: {
      const auto due = candidates_in(tx.exec_params(
          "SELECT j.job_id, j.type_id, j.fire_at FROM (SELECT k.job_id, tocsin.reschedule_job(k.job_id, " +
              new_deadline(bulk.request, bulk.started_at) +
              ") AS result FROM unnest($1::bigint[]) k (job_id)) r JOIN tocsin.job_live j ON j.shard = (r.job_id & "
              "1023)::smallint AND j.job_id = r.job_id WHERE r.result = 'rescheduled'",
          array));
      return {static_cast<std::int64_t>(due.size()), due};
    }
    case BulkAction::run: {
      auto due = candidates_in(tx.exec_params(
          "UPDATE tocsin.job_live j SET fire_at = clock_timestamp(), gmt_modified = clock_timestamp() FROM "
          "unnest($1::bigint[]) k (job_id) WHERE j.shard = (k.job_id & 1023)::smallint AND j.job_id = k.job_id AND "
          "j.status = 0 RETURNING j.job_id, j.type_id, j.fire_at",
          array));
      return {static_cast<std::int64_t>(due.size()), due};
    }
    case BulkAction::retry: {
      auto due = candidates_in(tx.exec_params(
          sql::revive("SELECT h.job_id, h.finished_at, 0::bigint AS delay_us FROM unnest($1::bigint[]) k (job_id) JOIN "
                      "tocsin.job_history_dead h ON h.job_id = k.job_id",
                      "j.job_id, j.type_id, j.fire_at"),
          array));
      return {static_cast<std::int64_t>(due.size()), due};
    }
  }
  return {};
}

}  // namespace

struct PgBulkStore::Page {
  std::vector<JobId> matching;
  JobId last_job_id = 0;  // everything up to it has been read
  bool is_last = false;
};

// ---- control database

Result<Bulk> PgBulkStore::start(const BulkRequest& request, std::int64_t matched, NodeId node, Duration lease) {
  return session_.write<Bulk>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    const BulkFilter& filter = request.filter;
    return bulk_from(tx.exec_params1(
        "INSERT INTO tocsin.bulk AS b (action, filter, biz_id, type_id, from_time, to_time, death_reason, action_time, "
        "delay_us, spread_us, rate_per_s, reason, actor, matched, node_id, lease_until) VALUES ($1, $2::jsonb, $3, "
        "$4::integer, $5::timestamptz, $6::timestamptz, $7, $8::timestamptz, $9::bigint, $10::bigint, $11::double "
        "precision, $12, $13, $14::bigint, $15::bigint, clock_timestamp() + $16::bigint * interval '1 microsecond') "
        "RETURNING " +
            std::string(kBulkColumns),
        std::string(to_string(request.action)), request.filter_json, filter.biz_id, filter.type_id,
        pg_time(filter.from), pg_time(filter.to), filter.reason, pg_time(request.action_time),
        microseconds(request.delay), microseconds(request.spread), request.rate_per_s, request.reason, request.actor,
        matched, node, lease.count()));
  });
}

Result<std::optional<Bulk>> PgBulkStore::find(std::int64_t bulk_id) {
  return session_.read<std::optional<Bulk>>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    return bulk_of(tx.exec_params(
        "SELECT " + std::string(kBulkColumns) + " FROM tocsin.bulk b WHERE b.bulk_id = $1::bigint", bulk_id));
  });
}

Result<std::vector<Bulk>> PgBulkStore::list(int limit) {
  return session_.read<std::vector<Bulk>>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    std::vector<Bulk> bulks;
    for (const auto& row : tx.exec_params(
             "SELECT " + std::string(kBulkColumns) + " FROM tocsin.bulk b ORDER BY b.bulk_id DESC LIMIT $1", limit))
      bulks.push_back(bulk_from(row));
    return bulks;
  });
}

Result<std::optional<Bulk>> PgBulkStore::request_stop(std::int64_t bulk_id) {
  auto stopped = session_.write<int>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    tx.exec_params0(
        "UPDATE tocsin.bulk SET is_stop_requested = true WHERE bulk_id = $1::bigint AND state = 'running' AND NOT "
        "is_stop_requested",
        bulk_id);
    return 0;
  });
  if (!stopped) return stopped.error();
  return find(bulk_id);
}

Result<std::optional<Bulk>> PgBulkStore::adopt(NodeId node, Duration lease) {
  return session_.write<std::optional<Bulk>>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    return bulk_of(tx.exec_params(
        "WITH c AS MATERIALIZED (SELECT bulk_id FROM tocsin.bulk WHERE state = 'running' AND lease_until < "
        "statement_timestamp() ORDER BY bulk_id LIMIT 1 FOR UPDATE SKIP LOCKED) UPDATE tocsin.bulk b SET node_id = "
        "$1::bigint, lease_until = clock_timestamp() + $2::bigint * interval '1 microsecond' FROM c WHERE b.bulk_id = "
        "c.bulk_id RETURNING " +
            std::string(kBulkColumns),
        node, lease.count()));
  });
}

Result<std::optional<Bulk>> PgBulkStore::keep(std::int64_t bulk_id, NodeId node, std::int64_t changed, Duration lease) {
  return session_.write<std::optional<Bulk>>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    return bulk_of(tx.exec_params(
        "UPDATE tocsin.bulk b SET changed = $3::bigint, lease_until = clock_timestamp() + $4::bigint * interval '1 "
        "microsecond' WHERE b.bulk_id = $1::bigint AND b.node_id = $2::bigint AND b.state = 'running' RETURNING " +
            std::string(kBulkColumns),
        bulk_id, node, changed, lease.count()));
  });
}

Result<bool> PgBulkStore::finish(const Bulk& bulk, NodeId node) {
  return session_.write<bool>([&](pqxx::connection& connection) {
    pqxx::work tx(connection);
    const auto ended = tx.exec_params(
        "UPDATE tocsin.bulk SET state = $3, changed = $4::bigint, error = $5, finished_at = clock_timestamp() WHERE "
        "bulk_id = $1::bigint AND node_id = $2::bigint AND state = 'running'",
        bulk.bulk_id, node, std::string(to_string(bulk.state)), bulk.changed, bulk.error);
    tx.exec0("DELETE FROM tocsin.bulk WHERE finished_at < clock_timestamp() - interval '400 days'");
    tx.commit();
    return ended.affected_rows() == 1;
  });
}

// ---- every database

std::string PgBulkStore::conditions(const BulkFilter& filter, pqxx::transaction_base& tx, bool is_live) const {
  std::string sql;
  if (filter.biz_id) {
    sql += " AND j.biz_id = " + tx.quote(*filter.biz_id);
    if (is_live) sql += " AND j.shard = " + std::to_string(shard_of(*filter.biz_id, shards_));
  }
  if (filter.type_id) sql += " AND j.type_id = " + std::to_string(*filter.type_id);
  if (filter.from) sql += " AND j.action_time >= " + tx.quote(to_pg(*filter.from)) + "::timestamptz";
  if (filter.to) sql += " AND j.action_time < " + tx.quote(to_pg(*filter.to)) + "::timestamptz";
  if (filter.reason) sql += " AND tocsin.death_reason(j.errors -> -1 ->> 'message') = " + tx.quote(*filter.reason);
  return sql;
}

Result<std::int64_t> PgBulkStore::count(const BulkRequest& request) {
  return session_.read<std::int64_t>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    const BulkFilter& filter = request.filter;
    const std::string status = std::to_string(static_cast<int>(status_changed_by(request.action)));
    // All jobs of a type: the counts that are kept anyway are exact, whatever their size.
    if (filter.type_id && !filter.biz_id && !filter.from && !filter.to && !filter.reason) {
      return tx
          .exec_params1(
              "SELECT coalesce(sum(n), 0)::bigint FROM (SELECT type_id, status, n FROM tocsin.job_count UNION ALL "
              "SELECT type_id, status, n FROM tocsin.job_count_delta) c WHERE c.type_id = $1::integer AND c.status = " +
                  status,
              *filter.type_id)[0]
          .as<std::int64_t>();
    }
    const bool is_live = request.action != BulkAction::retry;
    return tx
        .exec1("SELECT count(*) FROM " + std::string(is_live ? "tocsin.job_live" : "tocsin.job_history_dead") +
               " j WHERE j.status = " + status + conditions(filter, tx, is_live) + " AND tocsin.lives_here(j.shard)")[0]
        .as<std::int64_t>();
  });
}

Result<BulkBatch> PgBulkStore::progress(std::int64_t bulk_id) {
  return session_.read<BulkBatch>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    const auto rows =
        tx.exec_params("SELECT changed, is_done FROM tocsin.bulk_progress WHERE bulk_id = $1::bigint", bulk_id);
    if (rows.empty()) return BulkBatch{};
    return BulkBatch{rows[0][0].as<std::int64_t>(), rows[0][1].as<bool>(), {}};
  });
}

// Index _id of every table, merged by job_id; with a biz_id the index _biz. At most kPageRows rows are read, so that a
// filter that matches little costs one batch no more than one that matches much.
PgBulkStore::Page PgBulkStore::read_page(pqxx::transaction_base& tx, const Bulk& bulk, JobId after, int limit) const {
  const BulkRequest& request = bulk.request;
  const bool is_live = request.action != BulkAction::retry;
  std::string key;
  if (request.filter.biz_id) {
    key = " AND j.biz_id = " + tx.quote(*request.filter.biz_id);
    if (is_live) key += " AND j.shard = " + std::to_string(shard_of(*request.filter.biz_id, shards_));
  }
  const std::string began = is_live ? "gmt_create" : "finished_at";
  const auto rows =
      tx.exec("WITH page AS MATERIALIZED (SELECT * FROM " +
              std::string(is_live ? "tocsin.job_live" : "tocsin.job_history_dead") + " j WHERE j.job_id > " +
              std::to_string(after) + key + " ORDER BY j.job_id LIMIT " + std::to_string(kPageRows) +
              "), hit AS (SELECT j.job_id FROM page j WHERE j.status = " +
              std::to_string(static_cast<int>(status_changed_by(request.action))) + " AND j." + began +
              " <= " + tx.quote(to_pg(bulk.started_at)) + "::timestamptz AND tocsin.lives_here(j.shard)" +
              conditions(request.filter, tx, is_live) + " ORDER BY j.job_id LIMIT " + std::to_string(limit) +
              ") SELECT job_id, 0 FROM hit UNION ALL SELECT max(job_id), count(*) FROM page");
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

Result<BulkBatch> PgBulkStore::run_batch(const Bulk& bulk, int limit) {
  return session_.write<BulkBatch>([&](pqxx::connection& connection) {
    pqxx::work tx(connection);
    StoredProgress progress = lock_progress(tx, bulk.bulk_id);
    if (progress.is_done) return BulkBatch{progress.changed, true, {}};
    Page page = read_page(tx, bulk, progress.last_job_id, limit);
    const bool is_second_visit = page.matching.empty() && page.is_last && !progress.locked.empty();
    std::vector<JobId> wanted = page.matching;
    if (is_second_visit) {
      const auto n = std::min(progress.locked.size(), static_cast<std::size_t>(limit));
      wanted.assign(progress.locked.begin(), progress.locked.begin() + static_cast<std::ptrdiff_t>(n));
      progress.locked.erase(progress.locked.begin(), progress.locked.begin() + static_cast<std::ptrdiff_t>(n));
    }
    const std::vector<JobId> mine = lock_jobs(tx, bulk.request.action, wanted);
    if (!is_second_visit && mine.size() < wanted.size()) {
      for (const JobId job : wanted) {
        if (progress.locked.size() < kMostLocked && !std::ranges::binary_search(mine, job))
          progress.locked.push_back(job);
      }
    }
    const Applied applied = mine.empty() ? Applied{} : apply(tx, bulk, mine);
    progress.changed += applied.changed;
    progress.last_job_id = page.last_job_id;
    progress.is_done = page.is_last && progress.locked.empty();
    write_progress(tx, bulk.bulk_id, progress);
    tx.commit();
    return BulkBatch{progress.changed, progress.is_done, applied.due};
  });
}

}  // namespace tocsin
