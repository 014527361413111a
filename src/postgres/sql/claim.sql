-- Claims the due jobs $1, $2 (pending, or running with the lease ended -> running) for $3 microseconds each.
-- Index: _id. Hazard: SKIP LOCKED in a materialized CTE, since a locking sub-select that is planned twice claims more
-- than it locked; the join back by key does not. Commits without waiting for the disk unless $6, for
-- synchronous_commit, is on: a claim that a crash of the database takes back leaves a pending job, and its token, which
-- is random, keeps the older run from finishing it. REQUIRES: a transaction of its own.
WITH s AS MATERIALIZED (SELECT set_config('synchronous_commit', $6::text, true) <> '' AS is_set),
c AS MATERIALIZED (
  SELECT j.shard, j.job_id, j.status AS was, j.fire_at AS due, k.ttr_us, clock_timestamp() AS at
  FROM unnest($1::smallint[], $2::bigint[], $3::bigint[], $7::integer[]) k (shard, job_id, ttr_us, type_id)
  JOIN {{table}} j ON j.shard = k.shard AND j.job_id = k.job_id
  WHERE j.type_id + 0 = k.type_id AND {{is_due}} AND {{is_here shard = j.shard}}
  FOR UPDATE OF j SKIP LOCKED),
{{claim_locked ttr_us = c.ttr_us | seed = $4 | node = $5::text}}
