-- Makes the pending job $2 due in $3 microseconds.
-- Index: _id.
{{change_one assignments = action_time = statement_timestamp() + $3::bigint * interval '1 microsecond',
    fire_at = statement_timestamp() + $3::bigint * interval '1 microsecond',
    started_at = NULL,
    late_from = NULL}}
