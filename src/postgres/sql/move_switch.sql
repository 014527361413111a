-- Part of the switch, beside move_flip_map.sql in one transaction: the move is switched.
-- Index: the primary key of tocsin.move.
UPDATE tocsin.move
SET state = 'switched', changed_at = clock_timestamp(), thaw_at = {{thaw_lease}}
WHERE shard = $1 AND state = 'switching'
