-- The key's ordinal, and whether the job j was created with the same body.
k.ord, j.body_hash = tocsin.body_hash(k.requested_time, k.attribute, k.own_max_attempts) AS is_same
