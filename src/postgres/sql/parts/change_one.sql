-- Changes the pending job $2.
UPDATE tocsin.job_live j
SET gmt_modified = clock_timestamp(), {{assignments}}
WHERE j.shard = $1::smallint AND j.job_id = $2::bigint AND j.status = 0
RETURNING {{live_columns}}
