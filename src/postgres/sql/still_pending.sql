-- Those of the jobs $1, $2 that are pending.
-- Index: _id. Hazard: lateral with a limit, as update_existing.
SELECT j.job_id
FROM unnest($1::smallint[], $2::bigint[]) k (shard, job_id)
CROSS JOIN LATERAL (
  SELECT j.job_id
  FROM tocsin.job_live j
  WHERE j.shard = k.shard AND j.job_id = k.job_id AND j.status = 0
  LIMIT 1) j
