-- Creates jobs that have keys, but for those whose key exists and those of types that take no jobs. Answers with one row
-- (NULL, clock, the types that take none) and one (job_id, clock, NULL) per job that was created. $13: a lock time-out,
-- or NULL for the session's. $14: the types, each once.
-- Index: _key, for ON CONFLICT. Hazard: waits for another transaction that creates the same key; the jobs that exist
-- are read by find_by_key, with a snapshot of its own.
WITH t AS MATERIALIZED (
  SELECT set_config('lock_timeout', coalesce($13::text, current_setting('lock_timeout')), true),
         {{insert_time}}, {{closed_types types = $14}}),
ins AS (
  INSERT INTO tocsin.job_live AS j ({{new_job_columns}}, idempotency_key, body_hash)
  SELECT {{new_job_values}}, k.key, tocsin.body_hash(k.requested_time, k.attribute, k.own_max_attempts)
  FROM t,
       (SELECT {{new_job_arrays}}, unnest($10::text[]) AS key, unnest($11::text[]) AS requested_time,
               unnest($12::integer[]) AS own_max_attempts) k
  WHERE k.type_id <> ALL (t.closed)
  ON CONFLICT DO NOTHING
  RETURNING job_id, type_id, action_time, gmt_create),
n AS (
  {{count_created}})
SELECT NULL::bigint, now, closed
FROM t
UNION ALL
SELECT ins.job_id, t.now, NULL
FROM ins, t
