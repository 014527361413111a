-- As cancel_keys_together, but leaves locked rows alone, and answers only (ordinal of the key, job_id) of what it
-- cancels.
-- Index: _biz, then _id. Hazard: SKIP LOCKED in a materialized CTE, see claim; lateral, as update_existing.
WITH c AS MATERIALIZED (
  SELECT k.ord, l.shard, l.job_id
  FROM {{business_keys}}
  CROSS JOIN LATERAL ({{live_of_key}}) l
  CROSS JOIN LATERAL (
    SELECT FROM tocsin.job_live j
    WHERE j.shard = l.shard AND j.job_id = l.job_id AND j.status = 0
    FOR UPDATE OF j SKIP LOCKED) j
  WHERE l.n <= $4::integer AND l.status = 0),
d AS (
  DELETE FROM tocsin.job_live j USING c
  WHERE j.shard = c.shard AND j.job_id = c.job_id AND j.status = 0 AND {{is_here shard = j.shard}}
  RETURNING j.*, c.ord),
{{cancelled}}
SELECT ord, job_id
FROM d
