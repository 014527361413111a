-- The node $1 takes a bulk operation whose node has not extended its lease: $3, or any if that is NULL.
-- Index: bulk_running. Hazard: SKIP LOCKED in a materialized CTE, see claim: each goes to one node.
WITH c AS MATERIALIZED (
  SELECT bulk_id
  FROM tocsin.bulk
  WHERE state = 'running' AND lease_until < statement_timestamp() AND ($3::bigint IS NULL OR bulk_id = $3::bigint)
  ORDER BY bulk_id
  LIMIT 1
  FOR UPDATE SKIP LOCKED)
UPDATE tocsin.bulk b
SET node_id = $1::bigint, lease_until = clock_timestamp() + $2::bigint * interval '1 microsecond'
FROM c
WHERE b.bulk_id = c.bulk_id
RETURNING {{bulk_columns}}
