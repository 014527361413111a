-- Jobs $1, $2 whose claim has the token $3 and whose lease is valid.
FROM unnest($1::smallint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY k (shard, job_id, token, ord)
JOIN tocsin.job_live j ON j.shard = k.shard AND j.job_id = k.job_id
WHERE j.status = 1 AND j.claim_token = k.token AND j.fire_at > clock_timestamp()
