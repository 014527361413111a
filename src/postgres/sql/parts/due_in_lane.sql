-- The first $5 due rows of the lane $1, $2 behind ($3, {{after_id}}), due by $4, locked.
-- Index: _due. statement_timestamp() can be an index condition, clock_timestamp() cannot: with that each claim would
-- read the whole lane.
FROM {{table}} j
WHERE j.shard + 0 = $1::integer
  AND j.type_id = $2::integer
  AND (j.fire_at, j.job_id + 0) > ($3::timestamptz, {{after_id}}::bigint)
  AND j.fire_at <= least($4::timestamptz, statement_timestamp())
  AND j.attempts < j.max_attempts
  AND {{is_here shard = $1::smallint}}
ORDER BY j.fire_at, j.job_id + 0
LIMIT $5::integer
FOR UPDATE OF j SKIP LOCKED
