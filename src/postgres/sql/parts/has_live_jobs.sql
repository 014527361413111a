-- An expression: whether jobs of the type {{type}} are live, or in the outbox. Index: _due, one look per shard.
EXISTS (
  SELECT FROM generate_series(0, tocsin.shard_count() - 1) s
  CROSS JOIN LATERAL (
    SELECT FROM tocsin.job_live j
    WHERE j.shard = s::smallint AND j.shard + 0 = s AND j.type_id = {{type}}
    LIMIT 1) x)
OR EXISTS (SELECT FROM tocsin.outbox o WHERE o.settled_at IS NULL AND o.type_id = {{type}})
