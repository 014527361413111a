-- Those of the ids $1 that are outbox entries which stand for other jobs: (id, job_id).
-- Index: the primary key.
SELECT r.job_id, r.existing_job_id
FROM unnest($1::bigint[]) k (job_id)
JOIN tocsin.relayed r ON r.job_id = k.job_id
WHERE r.existing_job_id IS NOT NULL
