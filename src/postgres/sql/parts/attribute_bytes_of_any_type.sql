-- The size of the attributes of the job j. Hazard: to write small ones as text only to count them costs a list a quarter
-- more; and the size of compressed ones says nothing.
CASE
  WHEN j.attribute IS NULL THEN 0
  WHEN pg_column_compression(j.attribute) IS NULL THEN pg_column_size(j.attribute)
  ELSE octet_length(j.attribute::text)
END
