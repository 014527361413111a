#include "postgres/queries.h"

namespace tocsin::sql {

// dead -> pending, but for jobs of removed types.
std::string revive(const std::string& picked, const std::string& columns) {
  return "WITH c AS MATERIALIZED (" + picked +
         "), d AS (DELETE FROM tocsin.job_history_dead h USING c WHERE h.job_id = c.job_id AND h.finished_at = "
         "c.finished_at AND NOT EXISTS (SELECT FROM tocsin.biz_type t WHERE t.type_id = h.type_id AND t.removed_at IS "
         "NOT NULL)"
         " RETURNING h.*, c.delay_us), j AS (INSERT INTO tocsin.job_live (job_id, action_time, fire_at, gmt_create, "
         "gmt_modified, late_from, type_id, shard,"
         " max_attempts, biz_id, idempotency_key, body_hash, node, traceparent, attribute, errors) SELECT job_id, "
         "action_time, clock_timestamp() +"
         " delay_us * interval '1 microsecond', gmt_create, clock_timestamp(), greatest(action_time, "
         "clock_timestamp() + delay_us * interval '1 microsecond'), type_id, shard, max_attempts, biz_id, "
         "idempotency_key, body_hash, node,"
         " traceparent, attribute, errors FROM d RETURNING *), n AS (" +
         count_revived("d") + ") SELECT " + columns + " FROM j";
}

}  // namespace tocsin::sql
