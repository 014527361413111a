-- Reschedules the jobs $1 of a bulk operation to the time $2 and up to $3 microseconds later: each by the hash of its
-- id, so evenly, and to the same instant if a batch is repeated. REQUIRES: the transaction has locked the rows.
-- Index: _id.
SELECT j.job_id, j.type_id, j.fire_at
FROM (
  SELECT k.job_id,
         tocsin.reschedule_job(k.job_id, $2::timestamptz + ((hashint8(k.job_id)::bigint & 2147483647)
                                         * $3::double precision / 2147483648) * interval '1 microsecond') AS result
  FROM unnest($1::bigint[]) k (job_id)) r
JOIN tocsin.job_live j ON j.shard = (r.job_id & 1023)::smallint AND j.job_id = r.job_id
WHERE r.result = 'rescheduled'
