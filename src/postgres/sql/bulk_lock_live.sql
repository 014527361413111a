-- Locks those of the live jobs $1 that have the status {{status}} and that no other transaction holds.
-- Index: _id. Hazard: in the order of ids, so that two that lock cannot deadlock.
SELECT j.job_id
FROM unnest($1::bigint[]) k (job_id)
JOIN tocsin.job_live j ON j.shard = (k.job_id & 1023)::smallint AND j.job_id = k.job_id
WHERE j.status = {{status}}
ORDER BY j.job_id
FOR UPDATE OF j SKIP LOCKED
