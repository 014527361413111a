-- pending -> cancelled for the jobs $1, $2. {{lock}}: SKIP LOCKED; empty: waits for locked rows, at most
-- lock_timeout.
-- Index: _id. Hazard: SKIP LOCKED in a materialized CTE, see claim; the ids come sorted, see cancel_together.
WITH c AS MATERIALIZED (
  SELECT j.shard, j.job_id
  FROM (SELECT unnest($1::smallint[]) AS shard, unnest($2::bigint[]) AS job_id) k
  JOIN tocsin.job_live j ON j.shard = k.shard AND j.job_id = k.job_id AND j.status = 0
  FOR UPDATE OF j {{lock}}),
{{delete_pending}}
SELECT {{history_columns}}
FROM j
