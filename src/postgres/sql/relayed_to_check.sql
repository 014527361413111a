-- Jobs relayed from the database $1 a minute ago or earlier whose entries are not known to be deleted yet; seven days
-- ago if the entry stands for another job, because it is kept for so long.
SELECT job_id
FROM tocsin.relayed
WHERE source = $1::smallint AND (job_id & 1023) = ANY ($2::bigint[]) AND gone_at IS NULL
  AND relayed_at < clock_timestamp() - CASE WHEN existing_job_id IS NULL THEN interval '1 minute' ELSE interval '7 days' END
LIMIT $3
