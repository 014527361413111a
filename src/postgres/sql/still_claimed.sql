-- Of requests $1, $2, $3 that were not applied: those whose claim is valid, so another transaction must hold the row
-- locked, or its shard does not live here.
-- Index: _id.
SELECT k.ord
FROM unnest($1::smallint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY k (shard, job_id, token, ord)
JOIN tocsin.job_live j ON j.shard = k.shard AND j.job_id = k.job_id
WHERE j.status = 1 AND j.claim_token = k.token
