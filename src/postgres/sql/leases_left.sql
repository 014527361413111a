-- How many microseconds the valid ones of the leases $1, $2, $3 still last, by ordinal; 0: unknown, because the shard
-- does not live here (it is moving). No row: the lease is over.
-- Index: _id. Hazard: a row without a lease and a shard that moved look the same; lives_here tells them apart.
SELECT k.ord, coalesce(ceil(extract(epoch FROM j.fire_at - clock_timestamp()) * 1000000), 0)::bigint
FROM unnest($1::smallint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY k (shard, job_id, token, ord)
LEFT JOIN LATERAL (
  SELECT j.fire_at
  FROM tocsin.job_live j
  WHERE j.shard = k.shard
    AND j.job_id = k.job_id
    AND j.status = 1
    AND j.claim_token = k.token
    AND j.fire_at > clock_timestamp()) j ON true
WHERE j.fire_at IS NOT NULL OR NOT tocsin.lives_here(k.shard)
