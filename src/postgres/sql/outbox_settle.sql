-- Deletes the entries $1, which are jobs now, and records for the entries $3 why they became none. Another relay may
-- have done that before. Guard: an entry that was never claimed cannot have been relayed, and one that was changed since
-- it was claimed ($2, $4) is relayed again: a failover had lost its claim.
-- Index: the primary key of tocsin.outbox; the sets $1 and $3 are of one relayed batch. Hazard: an entry may be gone,
-- settled or changed since it was claimed, so not every row is found.
WITH d AS (
  DELETE FROM tocsin.outbox o
  USING unnest($1::bigint[], $2::timestamptz[]) e (job_id, changed_at)
  WHERE o.job_id = e.job_id AND o.changed_at IS NOT DISTINCT FROM e.changed_at AND o.claimed_by IS NOT NULL
    AND o.settled_at IS NULL)
UPDATE tocsin.outbox o
SET settled_at = clock_timestamp(), existing_job_id = e.existing, error = e.error
FROM unnest($3::bigint[], $4::timestamptz[], $5::bigint[], $6::text[]) e (job_id, changed_at, existing, error)
WHERE o.job_id = e.job_id AND o.changed_at IS NOT DISTINCT FROM e.changed_at AND o.claimed_by IS NOT NULL
  AND o.settled_at IS NULL
