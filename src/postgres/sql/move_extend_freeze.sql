-- Extends the write freeze.
UPDATE tocsin.move SET thaw_at = {{thaw_lease}} WHERE shard = $1
