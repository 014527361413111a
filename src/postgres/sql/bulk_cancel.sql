-- Cancels the jobs $1 of a bulk operation. REQUIRES: the transaction has locked the rows.
-- Index: _id, in tocsin.cancel_job.
SELECT count(*)
FROM (SELECT tocsin.cancel_job(k.job_id) AS result FROM unnest($1::bigint[]) k (job_id)) r
WHERE r.result = 'cancelled'
