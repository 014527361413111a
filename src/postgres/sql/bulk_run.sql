-- Makes the pending jobs $1 of a bulk operation due now. REQUIRES: the transaction has locked the rows.
-- Index: _id.
UPDATE tocsin.job_live j
SET fire_at = clock_timestamp(), gmt_modified = clock_timestamp()
FROM unnest($1::bigint[]) k (job_id)
WHERE j.shard = (k.job_id & 1023)::smallint AND j.job_id = k.job_id AND j.status = 0
RETURNING j.job_id, j.type_id, j.fire_at
