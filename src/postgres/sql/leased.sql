-- The leases $1, $2, $3 that are valid: their ordinals, and what a consumer's report needs to know of the job; NULL: not
-- known, because the shard does not live here (it is moving or has moved).
-- Index: _id.
SELECT k.ord, j.type_id, j.attempts, j.max_attempts
{{valid_leases}}
