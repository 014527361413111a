-- Creates jobs, but for those of types that take none. Answers with one row, (clock, number of jobs, the types that take
-- none): a row per job would cost a fifth more, and all but the clock is known to the caller. $10: one
-- such type is enough to create no job at all. $11: the types, each once.
-- Index: none is read. Through the parent: routing to a live table costs an insert little, unlike a scan. Hazard: the
-- clock is read once, see insert_time.
WITH t AS MATERIALIZED (SELECT {{insert_time}}, {{closed_types types = $11}}),
ins AS (
  INSERT INTO tocsin.job_live AS j ({{new_job_columns}})
  SELECT {{new_job_values}}
  FROM t, (SELECT {{new_job_arrays}}) k
  WHERE k.type_id <> ALL (t.closed) AND (t.closed = '{}' OR NOT $10::boolean)
  RETURNING type_id, action_time, gmt_create),
n AS (
  {{count_created}})
SELECT now, (SELECT count(*) FROM ins), closed
FROM t
