-- Reschedules the jobs $1 of a bulk operation, each to the time {{deadline}}. REQUIRES: the transaction has locked the
-- rows.
-- Index: _id.
SELECT j.job_id, j.type_id, j.fire_at
FROM (
  SELECT k.job_id, tocsin.reschedule_job(k.job_id, {{deadline}}) AS result
  FROM unnest($1::bigint[]) k (job_id)) r
JOIN tocsin.job_live j ON j.shard = (r.job_id & 1023)::smallint AND j.job_id = r.job_id
WHERE r.result = 'rescheduled'
