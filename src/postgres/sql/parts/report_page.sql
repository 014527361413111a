-- Ends a report that has pages, newest first: $4 rows q of the type $1, from $2 to $3, behind the last row seen ($5 its
-- time, $6 and $7 its other keys; {{seen}} names those that the report has).
WHERE ($1::text IS NULL OR q.biz_type = $1::text)
  AND $4::integer > 0
  AND {{time}} >= coalesce($2::timestamptz, '-infinity')
  AND {{time}} < coalesce($3::timestamptz, 'infinity')
  AND {{time}} <= coalesce($5::timestamptz, 'infinity')
  AND ($5::timestamptz IS NULL OR {{time}} <> $5::timestamptz OR ROW({{keys}}) > ROW({{seen}}))
  AND ($7::text IS NULL OR true)
ORDER BY {{time}} DESC, {{keys}}
LIMIT $4::integer
