-- All types, removed ones included.
-- Index: none; all rows are read, one per type.
SELECT {{type_columns}}
FROM tocsin.biz_type
ORDER BY name
