-- Changes the state of a move from $3 to $2 while its shard may be write-frozen.
-- Index: the primary key of tocsin.move.
UPDATE tocsin.move
SET state = $2, changed_at = clock_timestamp(), thaw_at = {{thaw_lease}}
WHERE shard = $1 AND state = $3
