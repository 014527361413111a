-- All types, also the removed ones that have jobs left.
SELECT {{type_columns}}
FROM tocsin.biz_type
ORDER BY name
