-- Live and history rows of the jobs $1, $2.
-- Index: _id of both; each day of history is opened once for all jobs, not once for each.
SELECT {{live_columns}}
FROM unnest($1::smallint[], $2::bigint[]) k (shard, job_id)
JOIN tocsin.job_live j ON j.shard = k.shard AND j.job_id = k.job_id
UNION ALL
SELECT {{history_columns}}
FROM tocsin.job_history j
WHERE j.job_id = ANY ($2::bigint[])
