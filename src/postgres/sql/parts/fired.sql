-- Ends a statement that deletes live rows d: they are done. A row that was running had its lease end, so its count
-- moves from running, not from pending. Event 9: an attempt and done.
h AS (
  INSERT INTO tocsin.job_history_done {{history_into}}
  {{history_row status = 2 | started_at = coalesce(d.started_at, clock_timestamp())
    | last_start = CASE WHEN d.started_at IS NOT NULL THEN clock_timestamp() END | attempts = d.attempts + 1
    | errors = CASE
        WHEN d.claim_token IS NULL THEN d.errors
        ELSE tocsin.append_error(d.errors, clock_timestamp(), d.node, d.attempts,
                                 'the lease ended before the attempt did', d.gmt_modified)
      END}}
  RETURNING job_id, type_id, coalesce(late_from, greatest(action_time, gmt_create)) AS due_at, started_at),
n AS (
  {{count_end left = d.status | status = 2 | event = 9 | sample = NULL::bigint | reason = NULL::text}})
SELECT * FROM h
