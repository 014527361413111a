-- A command becomes the driver of a move. Guard: $2, the driver it was before, unless a node has rescued the move
-- since.
-- Index: the primary key of tocsin.move.
UPDATE tocsin.move
SET driver = CASE WHEN driver = $2::bigint THEN driver ELSE {{next_driver after = driver}} END, is_rescued = false
WHERE shard = $1 AND (driver = coalesce($2::bigint, driver) OR is_rescued)
RETURNING {{move_columns}}
