-- A node becomes the driver of a move whose freeze is past its end.
-- Index: the primary key of tocsin.move.
UPDATE tocsin.move
SET driver = {{next_driver after = driver}}, is_rescued = true, state = CASE state WHEN 'switching' THEN 'copying' ELSE state END,
    changed_at = clock_timestamp(), thaw_at = {{thaw_lease}}
WHERE shard = $1 AND driver = $2 AND thaw_at < clock_timestamp()
RETURNING {{move_columns}}
