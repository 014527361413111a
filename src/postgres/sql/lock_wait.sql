-- A lock that the transaction does not get within $1 fails it (55P03). A statement of its own: one that sets this itself
-- has waited for the locks of its tables by then.
-- Index: none.
SELECT set_config('lock_timeout', $1::text, true)
