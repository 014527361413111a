-- The number of jobs by type and status: what has been folded, and the deltas that have not.
-- Index: none; both tables are small. Hazard: one statement, so that no delta is missed or counted twice.
SELECT type_id, status, sum(n)::bigint
FROM (
  SELECT type_id, status, n
  FROM tocsin.job_count
  UNION ALL
  SELECT type_id, status, n
  FROM tocsin.job_count_delta
  WHERE status IS NOT NULL) c
GROUP BY 1, 2
ORDER BY 1, 2
