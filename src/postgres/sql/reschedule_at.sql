-- Gives the pending job $2 the deadline $3.
-- Index: _id.
{{change_one assignments = action_time = $3::timestamptz,
    fire_at = greatest($3::timestamptz, clock_timestamp()),
    started_at = NULL,
    late_from = CASE WHEN $3::timestamptz < clock_timestamp() THEN clock_timestamp() END}}
