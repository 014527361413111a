-- pending -> cancelled for the jobs of business keys. A key with more than $4 live jobs of any type is left unchanged;
-- they are counted before anything is locked. One snapshot, all or none: gives up (55P03) when a row stays locked for
-- 50 ms. Answers (ordinal of the key, job_id, 3) of what it cancels, then as state_of_keys. A job that another transaction
-- changed meanwhile is answered as pending.
-- Index: _biz, then _id. REQUIRES: a transaction of its own, for the lock time-out stays for the rest of it.
WITH {{row_lock_wait}},
k AS MATERIALIZED (
  SELECT k.*
  FROM s, {{business_keys}}),
l AS MATERIALIZED (
  SELECT k.ord, x.*
  FROM k
  CROSS JOIN LATERAL ({{live_of_key}}) x),
d AS (
  DELETE FROM tocsin.job_live j USING l
  WHERE l.n <= $4::integer AND l.status = 0 AND j.shard = l.shard AND j.job_id = l.job_id AND j.status = 0
    AND {{is_here shard = j.shard}}
  RETURNING j.*, l.ord),
{{cancelled}}
SELECT d.ord, d.job_id, 3
FROM d
UNION ALL
SELECT l.ord, l.job_id, l.status
FROM l
WHERE l.job_id <> ALL (ARRAY(SELECT d.job_id FROM d))
UNION ALL
SELECT k.ord, x.*
FROM k
CROSS JOIN LATERAL ({{ended_of_key}}) x
