-- Deletes the entries $1, which are jobs now, and records for the entries $2 why they became none. Another relay may
-- have done that before. Guard: an entry that was never claimed cannot have been relayed.
-- Index: the primary key of tocsin.outbox; the sets $1 and $2 are of one relayed batch. Hazard: an entry may be gone,
-- settled or cancelled since it was claimed, so not every row is found.
WITH d AS (
  DELETE FROM tocsin.outbox o
  WHERE o.job_id = ANY ($1::bigint[]) AND o.claimed_by IS NOT NULL AND o.settled_at IS NULL)
UPDATE tocsin.outbox o
SET settled_at = clock_timestamp(), existing_job_id = e.existing, error = e.error
FROM unnest($2::bigint[], $3::bigint[], $4::text[]) e (job_id, existing, error)
WHERE o.job_id = e.job_id AND o.claimed_by IS NOT NULL AND o.settled_at IS NULL
