-- Writes how far a bulk operation has come in this database. REQUIRES: the row is locked.
-- Index: the primary key of tocsin.bulk_progress.
UPDATE tocsin.bulk_progress
SET last_job_id = $2::bigint,
    changed = $3::bigint,
    is_done = $4::boolean,
    locked = $5::bigint[],
    written_at = clock_timestamp()
WHERE bulk_id = $1::bigint
