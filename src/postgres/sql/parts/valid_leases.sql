-- The leases $1, $2, $3 that are valid (k), with their jobs (j). A lease whose shard does not live here has NULL columns:
-- a row without a lease and a shard that moved look the same.
FROM unnest($1::smallint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY k (shard, job_id, token, ord)
LEFT JOIN LATERAL (
  SELECT j.type_id, j.attempts, j.max_attempts, j.fire_at
  FROM tocsin.job_live j
  WHERE j.shard = k.shard
    AND j.job_id = k.job_id
    AND j.status = 1
    AND j.claim_token = k.token
    AND j.fire_at > clock_timestamp()) j ON true
WHERE j.fire_at IS NOT NULL OR NOT tocsin.lives_here(k.shard)
