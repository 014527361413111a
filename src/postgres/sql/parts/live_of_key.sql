-- The oldest live jobs of the business key k, of any type, up to $4 + 1: those of its type, and n, how many there are of
-- any. The last of more than $4 has the status -2, whatever its type: there are too many.
SELECT x.shard, x.job_id, CASE WHEN x.n > $4::integer AND x.job_id = x.last THEN -2 ELSE x.status END AS status, x.n
FROM (
  SELECT x.*, count(*) OVER () AS n, max(x.job_id) OVER () AS last
  FROM (
    SELECT j.shard, j.job_id + 0 AS job_id, j.type_id, j.status
    FROM tocsin.job_live j
    WHERE j.shard = k.shard AND j.biz_id = k.biz_id
    ORDER BY j.job_id + 0
    LIMIT $4::integer + 1) x) x
WHERE (x.n > $4::integer AND x.job_id = x.last) OR {{of_key}}
