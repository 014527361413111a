-- Creates jobs. Answers with one row, (clock, number of jobs): a row per job would cost a fifth more, and all but the
-- clock is known to the caller.
-- Index: none is read. Through the parent: routing to a live table costs an insert little, unlike a scan. Hazard: the
-- clock is read once, see insert_time.
WITH t AS MATERIALIZED (SELECT {{insert_time}}),
ins AS (
  INSERT INTO tocsin.job_live AS j ({{new_job_columns}})
  SELECT {{new_job_values}}
  FROM t, (SELECT {{new_job_arrays}}) k
  RETURNING type_id, action_time, gmt_create),
n AS (
  {{count_created}})
SELECT now, (SELECT count(*) FROM ins)
FROM t
