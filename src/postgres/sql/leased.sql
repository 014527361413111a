-- The leases that are valid: their ordinals, and what a consumer's report needs to know of the job.
-- Index: _id.
SELECT k.ord, j.type_id, j.attempts, j.max_attempts
{{leased}}
