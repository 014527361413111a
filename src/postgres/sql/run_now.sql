-- Makes the pending job $2 due now.
-- Index: _id.
{{change_one assignments = fire_at = clock_timestamp()}}
