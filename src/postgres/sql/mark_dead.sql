-- The jobs $1, $2 that run, with the lease ended and all attempts spent -> dead.
-- Index: _id. Hazard: SKIP LOCKED in a materialized CTE, see claim.
WITH c AS MATERIALIZED (
  SELECT j.shard, j.job_id
  FROM unnest($1::smallint[], $2::bigint[]) k (shard, job_id)
  JOIN tocsin.job_live j ON j.shard = k.shard AND j.job_id = k.job_id
  WHERE j.status = 1 AND j.attempts >= j.max_attempts AND j.fire_at <= clock_timestamp()
    AND {{is_here shard = j.shard}}
  FOR UPDATE OF j SKIP LOCKED),
d AS (
  DELETE FROM tocsin.job_live j USING c
  WHERE j.shard = c.shard AND j.job_id = c.job_id
  RETURNING j.*),
h AS (
  INSERT INTO tocsin.job_history_dead {{history_into}}
  {{history_row status = 4 | started_at = d.started_at | last_start = NULL::timestamptz | attempts = d.attempts
    | node = d.node
    | errors = tocsin.append_error(d.errors, clock_timestamp(), d.node, d.attempts,
                                   'the lease ended before the last attempt did', d.gmt_modified)}}),
n AS (
  -- Event 4: dead.
  {{count_end left = 1 | status = 4 | event = 4 | sample = max(d.job_id)
    | reason = 'the lease ended before the last attempt did'}})
SELECT count(*) FROM d
