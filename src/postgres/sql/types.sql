-- All types, removed ones included.
SELECT {{type_columns}}
FROM tocsin.biz_type
ORDER BY name
