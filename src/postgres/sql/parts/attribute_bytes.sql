-- The size of the attributes of the job j, or 0 if it does not have the type of the business key k. Hazard: to write
-- small ones as text only to count them costs a list a quarter more; and the size of compressed ones says nothing.
CASE
  WHEN j.attribute IS NULL OR j.type_id <> k.type_id THEN 0
  WHEN pg_column_compression(j.attribute) IS NULL THEN pg_column_size(j.attribute)
  ELSE octet_length(j.attribute::text)
END
