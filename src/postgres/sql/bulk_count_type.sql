-- The number of live jobs of the type $1 with the status {{status}}: the counts that are kept anyway are exact, whatever
-- their size.
-- Index: that of job_count by type and status. job_count_delta has none: it is as large as what was counted since the
-- last fold.
SELECT coalesce(sum(n), 0)::bigint
FROM (
  SELECT type_id, status, n
  FROM tocsin.job_count
  UNION ALL
  SELECT type_id, status, n
  FROM tocsin.job_count_delta) c
WHERE c.type_id = $1::integer AND c.status = {{status}}
