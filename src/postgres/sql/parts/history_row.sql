-- Turns live rows d into rows of history. last_start: see job_history.last_started_at.
SELECT d.job_id, d.action_time, d.fire_at, d.gmt_create, {{started_at}}, {{last_start}}, d.late_from, clock_timestamp(), d.type_id,
       d.shard, {{status}}, {{attempts}}, d.max_attempts, d.biz_id, d.idempotency_key, d.body_hash, {{node}},
       d.traceparent, d.attribute, {{errors}}
FROM d
