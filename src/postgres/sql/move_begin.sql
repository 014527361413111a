-- Begins the move of the shard $1 to the database $2. Guard: the shard does not live there already.
-- Index: none; the shard map is one row.
INSERT INTO tocsin.move (shard, source, target, driver)
SELECT $1::integer, p.places[$1::integer + 1], $2::smallint, {{next_driver after = 0}}
FROM tocsin.shard_map p
WHERE p.places[$1::integer + 1] <> $2::smallint
RETURNING {{move_columns}}
