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

}  // namespace

std::string overdue() {
  return "WITH RECURSIVE " +
         lane_walk(
             "(SELECT s::smallint, 1, coalesce((SELECT max(type_id) FROM tocsin.biz_type), 0) FROM "
             "generate_series(0, tocsin.shard_count() - 1) s WHERE tocsin.lives_here(s::smallint))") +
         " SELECT count(*) FROM (SELECT 1 FROM w CROSS JOIN LATERAL (SELECT 1 FROM tocsin.job_live j WHERE j.shard = "
         "w.shard AND j.shard + 0 = w.shard::integer AND j.type_id = w.type_id AND j.fire_at < statement_timestamp() "
         "LIMIT $1::integer) x WHERE w.fire_at < statement_timestamp() LIMIT $1::integer) y";
}

std::string scan() {
  return "WITH RECURSIVE " + lane_walk("unnest($8::smallint[], $9::integer[], $10::integer[])") +
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
         " UNION ALL SELECT -1, pg_snapshot_xmax(pg_current_snapshot())::text::bigint, statement_timestamp(), false"
         " UNION ALL SELECT 0, pg_snapshot_xmin(pg_current_snapshot())::text::bigint, clock_timestamp(), false";
}

}  // namespace tocsin::sql
