-- The key's ordinal, and whether the job j was created with the same body.
k.ord, j.body_hash = tocsin.body_hash(k.time_asked, k.attribute, k.own_max_attempts) AS is_same
