-- The move of one shard, as this database has recorded it.
-- Index: the primary key of tocsin.move.
SELECT {{move_columns}} FROM tocsin.move WHERE shard = $1
