-- dead -> pending for up to $4 jobs of the type $1 that died from $2 to $3, oldest first, $5 microseconds apart.
-- Index: the days' tables of history bound what is read. Hazard: SKIP LOCKED in a materialized CTE, see claim.
WITH c AS MATERIALIZED (
  SELECT job_id, finished_at, $5::bigint * (row_number() OVER (ORDER BY finished_at, job_id) - 1) AS delay_us
  FROM (
    SELECT job_id, finished_at
    FROM tocsin.job_history_dead h
    WHERE type_id = $1::integer
      AND finished_at >= $2::timestamptz
      AND finished_at < $3::timestamptz
      AND tocsin.lives_here(shard)
      {{type_is_there}}
    ORDER BY finished_at, job_id
    LIMIT $4::integer
    FOR UPDATE OF h SKIP LOCKED) x),
{{revive}}
SELECT {{live_columns}}
FROM j
