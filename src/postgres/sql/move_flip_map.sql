-- The shard $1 lives in the database $3 from now on. Guard: it lives in $2.
-- Index: none; the shard map is one row.
UPDATE tocsin.shard_map
SET version = version + 1, places[$1::integer + 1] = $3::smallint
WHERE places[$1::integer + 1] = $2::smallint
