-- dead -> pending for the jobs $1 that died at $2, each due after its delay $3 in microseconds.
-- Index: _id of history, of the day's table. Hazards: as retry.
WITH c AS MATERIALIZED (
  SELECT h.job_id, h.finished_at, k.delay_us
  FROM unnest($1::bigint[], $2::timestamptz[], $3::bigint[]) k (job_id, finished_at, delay_us)
  JOIN tocsin.job_history_dead h ON h.job_id = k.job_id AND h.finished_at = k.finished_at
  FOR UPDATE OF h SKIP LOCKED),
{{revive}}
SELECT job_id
FROM j
