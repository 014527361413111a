-- Live rows of the jobs $1, $2: a job that is found there needs no other table.
-- Index: _id.
SELECT {{live_columns}}
FROM unnest($1::smallint[], $2::bigint[]) k (shard, job_id)
JOIN tocsin.job_live j ON j.shard = k.shard AND j.job_id = k.job_id
