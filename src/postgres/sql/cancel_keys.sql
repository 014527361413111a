-- As cancel_keys_together, but leaves locked rows alone, and answers only (ordinal of the key, job_id) of what it
-- cancels. A key with more than $4 unlocked pending jobs is left unchanged; $4 + 1 of them are locked meanwhile.
-- Index: _biz, then _id. Hazard: SKIP LOCKED in a materialized CTE, see claim.
WITH c AS MATERIALIZED (
  SELECT k.ord, l.shard, l.job_id
  FROM {{business_keys}}
  CROSS JOIN LATERAL (
    SELECT x.shard, x.job_id, count(*) OVER () AS n
    FROM (
      SELECT j.shard, j.job_id
      FROM tocsin.job_live j
      WHERE j.shard = k.shard AND {{of_key}} AND j.status = 0
      ORDER BY j.job_id
      LIMIT $4::integer + 1
      FOR UPDATE OF j SKIP LOCKED) x) l
  WHERE l.n <= $4::integer),
d AS (
  DELETE FROM tocsin.job_live j USING c
  WHERE j.shard = c.shard AND j.job_id = c.job_id AND j.status = 0 AND {{is_here}}
  RETURNING j.*, c.ord),
{{cancelled}}
SELECT ord, job_id
FROM d
