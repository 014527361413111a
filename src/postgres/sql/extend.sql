-- Makes valid leases end so many microseconds ($4) from now, not before the deadline; answers (ordinal, type). Skips
-- locked rows.
-- gmt_modified stays: of a running row it is the start of the attempt.
-- Index: _id. Hazard: SKIP LOCKED in a materialized CTE, see claim.
WITH c AS MATERIALIZED (
  SELECT k.ord, j.shard, j.job_id, j.type_id, ($4::bigint[])[k.ord] AS ttr_us
  FROM unnest($1::smallint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY k (shard, job_id, token, ord)
  JOIN tocsin.job_live j ON j.shard = k.shard AND j.job_id = k.job_id
  WHERE j.status = 1 AND j.claim_token = k.token AND j.fire_at > clock_timestamp() AND {{is_here shard = j.shard}}
  FOR UPDATE OF j SKIP LOCKED),
u AS (
  UPDATE tocsin.job_live j
  SET fire_at = {{not_before_deadline at = clock_timestamp() + c.ttr_us * interval '1 microsecond'}}
  FROM c
  WHERE j.shard = c.shard AND j.job_id = c.job_id
  RETURNING c.ord, c.type_id)
SELECT ord, type_id FROM u
