-- Live and history rows of the jobs $1, $2.
-- Index: _id of both.
SELECT {{live_columns}}
FROM unnest($1::smallint[], $2::bigint[]) k (shard, job_id)
JOIN tocsin.job_live j ON j.shard = k.shard AND j.job_id = k.job_id
UNION ALL
SELECT {{history_columns}}
FROM unnest($1::smallint[], $2::bigint[]) k (shard, job_id)
JOIN tocsin.job_history j ON j.job_id = k.job_id
