-- Locks those of the live jobs $1 that match the bulk operation now and that no other transaction holds. {{matches}}:
-- bulk_matches. READ COMMITTED checks it again on the row that is locked, which may be newer than the one that was read.
-- Index: _id. Hazards: in the order of ids, so that two that lock cannot deadlock. Without IS TRUE the planner may read
-- all jobs of a key or a type instead of those in $1.
SELECT j.job_id
FROM unnest($1::bigint[]) k (job_id)
JOIN tocsin.job_live j ON j.shard = (k.job_id & 1023)::smallint AND j.job_id = k.job_id
WHERE ({{matches}}) IS TRUE
ORDER BY j.job_id
FOR UPDATE OF j SKIP LOCKED
