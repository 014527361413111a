-- Locks a move for its driver; no row if another driver has it.
-- Index: the primary key of tocsin.move.
SELECT FROM tocsin.move WHERE shard = $1 AND driver = $2 FOR UPDATE
