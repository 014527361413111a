-- Creates jobs that have keys, but for those whose key exists. Answers (job_id, clock) of those created. $13: a lock
-- time-out, or NULL for the session's.
-- Index: _key, for ON CONFLICT. Hazard: waits for another transaction that creates the same key; the jobs that exist
-- are read by find_by_key, with a snapshot of its own.
WITH t AS MATERIALIZED (
  SELECT {{insert_time}}, set_config('lock_timeout', coalesce($13::text, current_setting('lock_timeout')), true)),
ins AS (
  INSERT INTO tocsin.job_live AS j ({{new_job_columns}}, idempotency_key, body_hash)
  SELECT {{new_job_values}}, k.key, tocsin.body_hash(k.time_asked, k.attribute, k.own_max_attempts)
  FROM t,
       (SELECT {{new_job_arrays}}, unnest($10::text[]) AS key, unnest($11::text[]) AS time_asked,
               unnest($12::integer[]) AS own_max_attempts) k
  ON CONFLICT DO NOTHING
  RETURNING job_id, type_id, action_time, gmt_create),
n AS (
  {{count_created}})
SELECT job_id, (SELECT now FROM t)
FROM ins
