-- Ends a statement that deletes pending rows d: they are cancelled, and j are their rows of history. Event 3:
-- cancelled.
j AS (
  INSERT INTO tocsin.job_history_cancelled {{history_into}}
  {{history_row status = 3 | started_at = d.started_at | last_start = NULL::timestamptz | attempts = d.attempts | node = d.node | errors = d.errors}}
  RETURNING *),
n AS (
  {{count_end left = 0 | status = 3 | event = 3 | sample = NULL::bigint | reason = NULL::text}})
