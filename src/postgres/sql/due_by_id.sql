-- Type and due time of live jobs.
-- Index: _id.
SELECT j.job_id, j.type_id, j.fire_at
FROM unnest($1::smallint[], $2::bigint[]) k (shard, job_id)
JOIN tocsin.job_live j ON j.shard = k.shard AND j.job_id = k.job_id
