-- Locks what bulk operations and moves of shards exclude each other by: whoever has it may begin the one if the other
-- has not begun. Index: none; one row.
SELECT FROM tocsin.shard_map FOR UPDATE
