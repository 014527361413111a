#include "postgres/pg_maintenance.h"

#include "postgres/queries.h"

namespace tocsin {

Status PgMaintenance::forget_dead_nodes() {
  return session_.write<Unit>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    tx.exec0(
        "DELETE FROM tocsin.node WHERE heartbeat_at < clock_timestamp() - interval '1 hour'"
        " AND node_id <> ALL (SELECT unnest(owners) FROM tocsin.shard_map)");
    // Others take them when they ask for the same limit; of types that are gone nobody does.
    tx.exec0("DELETE FROM tocsin.permit WHERE renewed_at + ttl + lease < clock_timestamp() - interval '1 hour'");
    return Unit{};
  });
}

Status PgMaintenance::forget_removed_types() {
  return session_.write<Unit>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    // A day later: jobs that were on their way when the type was removed ran after it.
    tx.exec0(
        "DELETE FROM tocsin.biz_type t WHERE t.removed_at IS NOT NULL AND (t.removed_at AT TIME ZONE 'UTC')::date + 1 <"
        " (SELECT min(to_date(right(c.relname, 8), 'YYYYMMDD')) FROM pg_class c WHERE c.relnamespace ="
        " 'tocsin'::regnamespace AND c.relkind = 'r' AND c.relname ~ '^job_history_[a-z]+_[0-9]{8}$') AND NOT (" +
        sql::has_live_jobs("t.type_id") + ")");
    return Unit{};
  });
}

Result<int> PgMaintenance::fold_counts() {
  return session_.write<int>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    // Deltas are deleted and their sum added in one statement: a reader sees both or neither.
    const auto& statement = session_.prepared("fold_counts", [] {
      return "WITH d AS (DELETE FROM tocsin.job_count_delta WHERE ctid = ANY (ARRAY(SELECT ctid FROM "
             "tocsin.job_count_delta LIMIT 50000 FOR UPDATE"
             " SKIP LOCKED)) RETURNING *), s AS (SELECT type_id, status, sum(n) AS n FROM d GROUP BY 1, 2 ORDER BY 1, "
             "2), f AS (INSERT INTO"
             " tocsin.job_count AS c SELECT * FROM s ON CONFLICT (type_id, status) DO UPDATE SET n = c.n + excluded.n) "
             "SELECT count(*) FROM d";
    });
    return exec1(tx, statement)[0].as<int>();
  });
}

Status PgMaintenance::prepare_history() {
  return session_.write<Unit>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    tx.exec(
        "SELECT tocsin.ensure_history((statement_timestamp() AT TIME ZONE 'UTC')::date, (statement_timestamp() AT TIME "
        "ZONE 'UTC')::date + 7)");
    return Unit{};
  });
}

Result<std::vector<PgMaintenance::OldDay>> PgMaintenance::old_history(const std::map<std::string, int>& days) {
  return session_.read<std::vector<OldDay>>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    std::vector<OldDay> found;
    for (const auto& [status, keep] : days) {
      const auto rows = tx.exec_params(
          "SELECT c.relname, i.inhrelid IS NOT NULL, coalesce(i.inhdetachpending, false) FROM pg_class c JOIN "
          "pg_namespace n ON n.oid = c.relnamespace"
          " LEFT JOIN pg_inherits i ON i.inhrelid = c.oid WHERE n.nspname = 'tocsin' AND c.relkind = 'r'"
          " AND c.relname ~ ('^job_history_' || $1 || '_[0-9]{8}$')"
          " AND to_date(right(c.relname, 8), 'YYYYMMDD') < (statement_timestamp() AT TIME ZONE 'UTC')::date - "
          "$2::integer ORDER BY 1",
          status, keep);
      for (const auto& row : rows) found.push_back({status, row[0].c_str(), row[1].as<bool>(), row[2].as<bool>()});
    }
    return found;
  });
}

Result<bool> PgMaintenance::drop_history(const OldDay& day) {
  return session_.write<bool>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    try {
      // Detached first, without the lock that would stop every finish; then nobody reads the table any more.
      if (day.is_attached) {
        tx.exec0("ALTER TABLE tocsin.job_history_" + day.status + " DETACH PARTITION tocsin." + day.table +
                 (day.is_half_detached ? " FINALIZE" : " CONCURRENTLY"));
      }
      tx.exec0("DROP TABLE tocsin." + day.table);
    } catch (const pqxx::sql_error& error) {
      // Gone or detached since it was found, or somebody detaches it right now.
      if (error.sqlstate() != "42P01" && error.sqlstate() != "55000") throw;
      return false;
    }
    return true;
  });
}

}  // namespace tocsin
