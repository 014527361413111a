-- Ends a report that has no pages: rows q of the type $1. The other parameters are named, so that each has a type.
WHERE ($1::text IS NULL OR q.biz_type = $1::text)
  AND $4::integer > 0
  AND num_nonnulls($2::timestamptz, $3::timestamptz, $5::text, $6::text, $7::text) >= 0
