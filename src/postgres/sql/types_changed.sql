-- The types whose gmt_modified is later than $1, and with each row the version of the whole registry (RegistryVersion).
-- One row without a type when none is later. double precision holds microseconds of our time exactly.
-- Index: none; the table is small.
SELECT v.types, v.sum, t.*
FROM (
  SELECT count(*) AS types,
         (coalesce(sum((date_part('epoch', gmt_modified) * 1000000)::bigint), 0) % 4611686018427387904)::bigint AS sum
  FROM tocsin.biz_type) v
LEFT JOIN (
  SELECT {{type_columns}}
  FROM tocsin.biz_type
  WHERE gmt_modified > $1::timestamptz) t ON true
