-- Of the jobs $1, $2 those that a claim with the seed $3 holds: what a claim did whose answer was lost.
-- Index: _id.
SELECT {{live_columns}}, j.claim_token
FROM (SELECT DISTINCT * FROM unnest($1::smallint[], $2::bigint[])) k (shard, job_id)
JOIN {{table}} j ON j.shard = k.shard AND j.job_id = k.job_id
WHERE j.status = 1 AND j.claim_token = hashint8extended(j.job_id, $3::bigint)
