-- Gives the pending jobs c a new deadline, or makes them due now where neither time is given.
UPDATE tocsin.job_live j
SET gmt_modified = clock_timestamp(),
    action_time = coalesce(c.at, statement_timestamp() + c.in_us * interval '1 microsecond', j.action_time),
    fire_at = greatest(coalesce(c.at, statement_timestamp() + c.in_us * interval '1 microsecond'),
                       clock_timestamp()),
    started_at = CASE WHEN c.at IS NULL AND c.in_us IS NULL THEN j.started_at END,
    late_from = CASE
      WHEN c.at IS NULL AND c.in_us IS NULL THEN j.late_from
      WHEN c.at < clock_timestamp() THEN clock_timestamp()
    END
FROM c
WHERE j.shard = c.shard AND j.job_id = c.job_id AND j.status = 0
RETURNING {{live_columns}}
