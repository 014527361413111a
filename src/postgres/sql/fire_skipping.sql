-- As fire, but leaves locked rows alone.
-- Index: _id. Hazard: SKIP LOCKED in a materialized CTE, see claim.
WITH c AS MATERIALIZED (
  SELECT j.shard, j.job_id
  FROM (SELECT unnest($1::smallint[]) AS shard, unnest($2::bigint[]) AS job_id, unnest($4::integer[]) AS type_id) k
  JOIN {{table}} j
    ON j.shard = k.shard AND j.job_id = k.job_id AND j.type_id + 0 = k.type_id AND {{is_due}}
    AND {{is_here shard = j.shard}}
  FOR UPDATE OF j SKIP LOCKED),
d AS (
  DELETE FROM {{table}} j USING c
  WHERE j.shard = c.shard AND j.job_id = c.job_id
  RETURNING j.*),
{{fired node = $3::text}}
