-- All moves.
-- Index: none; one row per shard that moves.
SELECT {{move_columns}} FROM tocsin.move ORDER BY shard
