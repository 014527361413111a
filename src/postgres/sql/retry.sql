-- dead -> pending for the job $1, due at once.
-- Index: _id of history.
WITH c AS MATERIALIZED (
  SELECT job_id, finished_at, 0::bigint AS delay_us
  FROM tocsin.job_history_dead h
  WHERE job_id = $1::bigint {{type_is_there}}
  FOR UPDATE OF h),
{{revive}}
SELECT {{live_columns}}
FROM j
