-- dead -> pending for the jobs $1, due at once.
-- Index: _id of history. Hazard: SKIP LOCKED in a materialized CTE, see claim. The statement leaves out rows that another
-- transaction has locked.
WITH c AS MATERIALIZED (
  SELECT job_id, finished_at, 0::bigint AS delay_us
  FROM tocsin.job_history_dead h
  WHERE job_id = ANY ($1::bigint[]) {{type_is_there}}
  ORDER BY job_id
  FOR UPDATE OF h SKIP LOCKED),
{{revive}}
SELECT {{live_columns}}
FROM j
