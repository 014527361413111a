-- The move of one shard, as this database has recorded it.
SELECT {{move_columns}} FROM tocsin.move WHERE shard = $1
