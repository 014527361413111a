-- Columns of a live row j, in the order in which job_from_row() reads them. A live row has neither finished_at
-- nor last_started_at.
j.job_id, j.biz_id, j.type_id, j.status, j.action_time, j.fire_at, j.attempts, j.max_attempts, j.attribute,
j.idempotency_key, j.node, j.traceparent, j.gmt_create, j.gmt_modified, j.started_at,
NULL::timestamptz AS finished_at, j.errors, j.late_from, NULL::timestamptz AS last_started_at
