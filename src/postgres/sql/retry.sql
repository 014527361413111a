-- dead -> pending for the jobs $1, due at once.
-- Index: _id of history. Hazard: waits for locked rows, in the order of the ids: two that retry the same jobs never wait
-- for each other.
WITH c AS MATERIALIZED (
  SELECT job_id, finished_at, 0::bigint AS delay_us
  FROM tocsin.job_history_dead h
  WHERE job_id = ANY ($1::bigint[]) {{type_is_there}}
  ORDER BY job_id
  FOR UPDATE OF h),
{{revive}}
SELECT {{live_columns}}
FROM j
