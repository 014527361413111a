-- The columns that history_row fills.
(job_id, action_time, fire_at, gmt_create, started_at, last_started_at, late_from, finished_at, type_id, shard, status, attempts,
 max_attempts, biz_id, idempotency_key, body_hash, node, traceparent, attribute, errors)
