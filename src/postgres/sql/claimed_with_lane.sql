-- The jobs of the lane $1, $2 that a claim with the seed $3 holds: what a claim_due did whose answer was lost, and that
-- was sent after $4.
-- Index: _due; running jobs have the end of their lease in fire_at.
SELECT {{live_columns}}, j.claim_token
FROM {{table}} j
WHERE j.shard + 0 = $1::integer
  AND j.type_id = $2::integer
  AND j.fire_at > $4::timestamptz
  AND j.status = 1
  AND j.claim_token = hashint8extended(j.job_id, $3::bigint)
