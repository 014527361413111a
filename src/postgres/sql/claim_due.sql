-- Claims the first due jobs of a lane, as claim does.
-- Index: _due, then _id. Hazard: as claim.
WITH s AS MATERIALIZED (SELECT set_config('synchronous_commit', $9::text, true) <> '' AS is_set),
c AS MATERIALIZED (
  SELECT j.shard, j.job_id, j.status AS was, j.fire_at AS due, clock_timestamp() AS at
  {{due_in_lane after_id = $10}}),
{{claim_locked ttr_us = $6::bigint | seed = $7 | node = $8::text}}
