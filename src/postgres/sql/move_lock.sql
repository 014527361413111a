-- Locks a move for its driver; no row if another driver has it.
SELECT FROM tocsin.move WHERE shard = $1 AND driver = $2 FOR UPDATE
