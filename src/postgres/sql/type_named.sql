-- The type $1, unless it was removed.
-- Index: the unique name.
SELECT {{type_columns}}
FROM tocsin.biz_type
WHERE name = $1 AND removed_at IS NULL
