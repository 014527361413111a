-- Jobs relayed from the database $1 at least a minute ago whose entries are not known to be deleted yet. An entry that
-- refers to an existing job is kept for seven days, so it is asked for after seven days.
-- Index: none; the table is read until $3 rows are found. It stays small: rows go ten minutes after their entry, those
-- of existing jobs after seven days. Hazard: while a source is down its rows stay, and each call reads them.
SELECT job_id
FROM tocsin.relayed
WHERE source = $1::smallint AND (job_id & 1023) = ANY ($2::bigint[]) AND gone_at IS NULL
  AND relayed_at < clock_timestamp() - CASE WHEN existing_job_id IS NULL THEN interval '1 minute' ELSE interval '7 days' END
LIMIT $3
