-- Whether jobs of the type $1 are live, or in the outbox.
-- Index: _due, one look per shard. Hazard: a create that has not committed is not seen.
SELECT {{has_live_jobs type = $1::integer}}
