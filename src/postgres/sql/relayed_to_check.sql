-- Jobs relayed from the database $1 at least a minute ago whose entries are not known to be deleted yet. An entry that
-- refers to an existing job is kept for seven days, so it is asked for after seven days, and when that job has left
-- history: until then callers know the job by the entry's id, too.
-- Index: none of relayed; the table is read until $3 rows are found. It stays small: rows go ten minutes after their
-- entry, those of existing jobs with those jobs. _id of live tables and of each day of history. Hazard: while a source
-- is down its rows stay, and each call reads them; the planner may hash what a NOT EXISTS looks in, all of history.
SELECT r.job_id
FROM tocsin.relayed r
WHERE r.source = $1::smallint AND (r.job_id & 1023) = ANY ($2::bigint[]) AND r.gone_at IS NULL
  AND CASE
    WHEN r.existing_job_id IS NULL THEN r.relayed_at < clock_timestamp() - interval '1 minute'
    ELSE r.relayed_at < clock_timestamp() - interval '7 days'
         AND (SELECT l.job_id FROM tocsin.job_live l
              WHERE l.shard = (r.existing_job_id & 1023)::smallint AND l.job_id = r.existing_job_id
              LIMIT 1) IS NULL
         AND (SELECT h.job_id FROM tocsin.job_history h WHERE h.job_id = r.existing_job_id LIMIT 1) IS NULL
  END
LIMIT $3
