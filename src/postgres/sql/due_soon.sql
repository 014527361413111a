-- How many pending jobs of each shard $1, in this order, are due within $2 microseconds; each counted up to $3. $4: with
-- those that are overdue.
-- Index: _due, by lane. Hazard: the lanes are looked up once, in a materialized CTE, and not for each shard.
WITH l AS MATERIALIZED (
  SELECT *
  FROM tocsin.lanes_due(statement_timestamp() + $2::bigint * interval '1 microsecond'))
SELECT (
  SELECT count(*)
  FROM (
    SELECT
    FROM l
    CROSS JOIN LATERAL (
      SELECT
      FROM tocsin.job_live j
      WHERE j.shard = s.shard AND j.shard + 0 = s.shard
        AND j.type_id = l.type_id
        AND j.status = 0
        AND j.fire_at < statement_timestamp() + $2::bigint * interval '1 microsecond'
        AND j.fire_at >= CASE WHEN $4::boolean THEN '-infinity'::timestamptz ELSE statement_timestamp() END
      LIMIT $3::integer) x
    WHERE l.shard = s.shard
    LIMIT $3::integer) y)
FROM unnest($1::smallint[]) WITH ORDINALITY s (shard, n)
ORDER BY s.n
