-- Columns of a row j of history, in the order of live_columns.
j.job_id, j.biz_id, j.type_id, j.status, j.action_time, j.fire_at, j.attempts, j.max_attempts, j.attribute,
j.idempotency_key, j.node, j.traceparent, j.gmt_create, j.finished_at AS gmt_modified, j.started_at,
j.finished_at, j.errors, j.late_from, j.last_started_at
