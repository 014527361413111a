-- Up to $4 jobs of the lane $1, $2 behind the first $6, due before $3 and too late to run -> dead: pending, or running
-- with the lease ended. The database's clock and the registry decide what is too late; a type without
-- drop_older_than_ms: nothing.
-- Index: _due, then _id. Hazard: SKIP LOCKED in a materialized CTE, see claim.
WITH c AS MATERIALIZED (
  SELECT j.shard, j.job_id
  FROM {{table}} j
  WHERE j.shard + 0 = $1::integer
    AND j.type_id = $2::integer
    AND j.fire_at < $3::timestamptz
    AND j.fire_at < statement_timestamp()
                    - (SELECT (t.catch_up ->> 'drop_older_than_ms')::bigint * interval '1 millisecond'
                       FROM tocsin.biz_type t
                       WHERE t.type_id = $2::integer)
    AND {{is_here shard = $1::smallint}}
  ORDER BY j.fire_at, j.job_id + 0
  LIMIT $4::integer OFFSET $6::integer
  FOR UPDATE OF j SKIP LOCKED),
d AS (
  DELETE FROM {{table}} j USING c
  WHERE j.shard = c.shard AND j.job_id = c.job_id
  RETURNING j.*),
h AS (
  INSERT INTO tocsin.job_history_dead {{history_into}}
  {{history_row status = 4 | started_at = d.started_at | last_start = NULL::timestamptz | attempts = d.attempts
    | node = d.node
    | errors = tocsin.append_error(d.errors, clock_timestamp(), $5::text, d.attempts, 'too late', NULL)}}),
n AS (
  -- Event 5: dropped late, which is dead as well.
  {{count_end left = d.status | status = 4 | event = 5 | sample = max(d.job_id) | reason = 'too late'}})
SELECT count(*) FROM d
