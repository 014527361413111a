-- The leases $1, $2, $3 that are valid: their ordinals, and what a consumer's report needs to know of the job; NULL: not
-- known, because the shard does not live here (it is moving or has moved).
-- Index: _id. Hazard: a row without a lease and a shard that moved look the same; lives_here tells them apart.
SELECT k.ord, j.type_id, j.attempts, j.max_attempts
FROM unnest($1::smallint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY k (shard, job_id, token, ord)
LEFT JOIN LATERAL (
  SELECT j.type_id, j.attempts, j.max_attempts
  FROM tocsin.job_live j
  WHERE j.shard = k.shard
    AND j.job_id = k.job_id
    AND j.status = 1
    AND j.claim_token = k.token
    AND j.fire_at > clock_timestamp()) j ON true
WHERE j.type_id IS NOT NULL OR NOT tocsin.lives_here(k.shard)
