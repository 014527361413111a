-- Extends the write freeze.
-- Index: the primary key of tocsin.move.
UPDATE tocsin.move SET thaw_at = {{thaw_lease}} WHERE shard = $1
