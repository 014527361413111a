-- As bulk_lock_live, for dead jobs.
-- Index: _id of history.
SELECT j.job_id
FROM unnest($1::bigint[]) k (job_id)
JOIN tocsin.job_history_dead j ON j.job_id = k.job_id
WHERE ({{matches}}) IS TRUE
ORDER BY j.job_id
FOR UPDATE OF j SKIP LOCKED
