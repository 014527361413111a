-- The first due jobs of a lane -> done, as fire_skipping does.
-- Index: _due, then _id. Hazard: SKIP LOCKED in a materialized CTE, see claim.
WITH c AS MATERIALIZED (
  SELECT j.shard, j.job_id
  {{due_in_lane after_id = $7}}),
d AS (
  DELETE FROM {{table}} j USING c
  WHERE j.shard = c.shard AND j.job_id = c.job_id
  RETURNING j.*),
{{fired node = $6::text}}
