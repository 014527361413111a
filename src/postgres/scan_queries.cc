// Statements that read the lanes: the scan, and how much is overdue.
#include "postgres/queries.h"

namespace tocsin::sql {

namespace {

// Table w: the lanes that have rows, by shard, of the types from first to last that `seeds` names for it. Steps through
// the due index from one such lane to the next, so lanes without rows cost nothing. Needs WITH RECURSIVE.
std::string lane_walk(const std::string& seeds) {
  const std::string next_lane =
      "(SELECT l.type_id, l.fire_at FROM tocsin.job_live l WHERE l.shard = w.shard AND l.shard + 0 = w.shard::integer "
      "AND l.type_id >= w.first AND l.type_id <= w.last ORDER BY l.type_id, l.fire_at LIMIT 1) n";
  return "w AS (SELECT w.shard, w.last, n.type_id, n.fire_at FROM " + seeds +
         " w (shard, first, last) CROSS JOIN LATERAL " + next_lane +
         " UNION ALL SELECT w.shard, w.last, n.type_id, n.fire_at FROM (SELECT v.shard, v.last, v.type_id + 1 AS first "
         "FROM w v WHERE v.type_id < v.last) w CROSS JOIN LATERAL " +
         next_lane + ")";
}

// Of the due indexes together; a database of few shards has fewer tables.
std::string due_index_bytes() {
  std::string sum;
  for (int table = 0; table < kLiveTables; ++table)
    sum += (table == 0 ? "" : " + ") + ("coalesce(pg_relation_size(to_regclass('" + live_table(table) + "_due')), 0)");
  return sum;
}

}  // namespace

std::string overdue() {
  return "SELECT count(*) FROM (SELECT 1 FROM tocsin.lanes_due() w CROSS JOIN LATERAL (SELECT 1 FROM tocsin.job_live j "
         "WHERE j.shard = w.shard AND j.shard + 0 = w.shard::integer AND j.type_id = w.type_id AND j.fire_at < "
         "statement_timestamp() LIMIT $1::integer) x LIMIT $1::integer) y";
}

std::string scan() {
  return "WITH RECURSIVE m AS MATERIALIZED (SELECT CASE WHEN $13::bigint > 0 THEN " + due_index_bytes() +
         " <= $13::bigint ELSE false END AS reads), s AS (SELECT * FROM unnest($8::smallint[], $9::integer[], "
         "$10::integer[]) s (shard, first, last)), " +
         lane_walk("(SELECT s.* FROM m JOIN s ON NOT m.reads)") +
         " SELECT k.ord, j.job_id, j.fire_at, j.is_exhausted FROM unnest($1::smallint[], $2::integer[], "
         "$3::timestamptz[], $4::bigint[],"
         " $5::timestamptz[], $6::integer[], $7::boolean[]) WITH ORDINALITY k (shard, type_id, after, after_id, "
         "before, "
         "most, only_exhausted, ord)"
         " CROSS JOIN LATERAL (SELECT l.job_id, l.fire_at, l.status = 1 AND l.attempts >= l.max_attempts AS "
         "is_exhausted FROM tocsin.job_live l"
         " WHERE l.shard = k.shard AND l.shard + 0 = k.shard::integer AND l.type_id = k.type_id AND (l.fire_at, "
         "l.job_id + 0) > (k.after, k.after_id) AND "
         "l.fire_at < k.before AND (NOT k.only_exhausted OR l.status = 1 AND l.attempts >= l.max_attempts)"
         " ORDER BY l.fire_at, l.job_id + 0 LIMIT k.most) j"
         " UNION ALL (SELECT -2, w.type_id::bigint * 1024 + w.shard, w.fire_at, false FROM w WHERE w.fire_at < "
         "$11::timestamptz LIMIT $12::integer)"
         " UNION ALL (SELECT -2, r.type_id::bigint * 1024 + s.shard, NULL::timestamptz, false FROM m JOIN s ON m.reads "
         "CROSS JOIN LATERAL (SELECT DISTINCT l.type_id FROM tocsin.job_live l WHERE l.shard = s.shard AND l.shard + 0 "
         "= s.shard::integer AND l.type_id >= s.first AND l.type_id <= s.last AND l.fire_at < $11::timestamptz) r "
         "LIMIT "
         "$12::integer)"
         " UNION ALL SELECT -3, (SELECT count(*) FROM w), NULL::timestamptz, false FROM m WHERE NOT m.reads"
         " UNION ALL SELECT -1, pg_snapshot_xmax(pg_current_snapshot())::text::bigint, statement_timestamp(), false"
         " UNION ALL SELECT 0, pg_snapshot_xmin(pg_current_snapshot())::text::bigint, clock_timestamp(), false";
}

}  // namespace tocsin::sql
