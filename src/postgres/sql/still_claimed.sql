-- Of requests $1, $2, $3 that were not applied: those whose claim is valid, so another transaction must hold the row
-- locked, and those whose shard does not live here: they count in the database where it lives.
-- Index: _id.
SELECT k.ord
FROM unnest($1::smallint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY k (shard, job_id, token, ord)
LEFT JOIN tocsin.job_live j ON j.shard = k.shard AND j.job_id = k.job_id
WHERE j.status = 1 AND j.claim_token = k.token OR NOT tocsin.lives_here(k.shard)
