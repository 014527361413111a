-- The bulk operation $1.
-- Index: the primary key.
SELECT {{bulk_columns}}
FROM tocsin.bulk b
WHERE b.bulk_id = $1::bigint
