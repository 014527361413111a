-- The $1 newest bulk operations.
-- Index: the primary key.
SELECT {{bulk_columns}}
FROM tocsin.bulk b
ORDER BY b.bulk_id DESC
LIMIT $1
