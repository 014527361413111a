-- How many live jobs are due, counted up to $1.
-- Index: _due, by lane. Hazard: the limit stands in each lane, too: a backlog of one lane would be read whole.
SELECT count(*)
FROM (
  SELECT 1
  FROM tocsin.lanes_due() w
  CROSS JOIN LATERAL (
    SELECT 1
    FROM tocsin.job_live j
    WHERE j.shard = w.shard AND j.shard + 0 = w.shard::integer
      AND j.type_id = w.type_id
      AND j.fire_at < statement_timestamp()
    LIMIT $1::integer) x
  LIMIT $1::integer) y
