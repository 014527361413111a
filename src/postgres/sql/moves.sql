-- All moves.
SELECT {{move_columns}} FROM tocsin.move ORDER BY shard
