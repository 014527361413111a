-- Records that the entries of these jobs are deleted.
-- Index: the primary key of tocsin.relayed.
UPDATE tocsin.relayed SET gone_at = clock_timestamp() WHERE job_id = ANY ($1::bigint[]) AND gone_at IS NULL
