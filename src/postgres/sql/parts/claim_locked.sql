-- Claims the rows c, which the caller has locked. c.was: status before; c.due: when the row was due; c.at: the clock,
-- read once for a row, since a first attempt starts at started_at and at gmt_modified.
u AS (
  UPDATE {{table}} j
  SET status = 1,
      attempts = j.attempts + 1,
      claim_token = hashint8extended(j.job_id, {{seed}}::bigint),
      node = {{node}},
      fire_at = c.at + {{ttr_us}} * interval '1 microsecond',
      started_at = coalesce(j.started_at, c.at),
      gmt_modified = c.at,
      errors = CASE
        WHEN j.claim_token IS NULL THEN j.errors
        ELSE tocsin.append_error(j.errors, c.at, j.node, j.attempts,
                                 'the lease ended before the attempt did', j.gmt_modified)
      END
  FROM c
  WHERE j.shard = c.shard AND j.job_id = c.job_id
  RETURNING j.*, c.was, c.due),
n AS (
  INSERT INTO tocsin.job_count_delta (type_id, status, n, event)
  SELECT type_id, 0, -count(*), NULL
  FROM u
  WHERE was = 0
  GROUP BY 1
  UNION ALL
  -- Event 7: attempt. A row that was running stays so, but starts another attempt.
  SELECT type_id, CASE was WHEN 0 THEN 1 END, count(*), 7::smallint
  FROM u
  GROUP BY 1, was)
SELECT {{live_columns}}, j.claim_token, j.due
FROM u j
WHERE (SELECT is_set FROM s)
