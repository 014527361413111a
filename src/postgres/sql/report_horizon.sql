-- Report: how many jobs are due when, oldest first: $4 rows of the type $1 and the width $8 (NULL: all), from $2 to $3,
-- behind the last row seen ($5 its time, $6 and $7 its width and type).
-- Index: the primary key. Hazard: all rows are sorted, so those of the page alone become JSON.
SELECT to_jsonb(q) || jsonb_build_object('slot', {{iso time = q.slot}}, 'counted_at', {{iso time = q.counted_at}})
FROM (
  SELECT *
  FROM tocsin.horizon q
  WHERE ($1::text IS NULL OR q.biz_type = $1::text)
    AND ($8::text IS NULL OR q.width = $8::text)
    AND $4::integer > 0
    AND q.slot >= coalesce($2::timestamptz, '-infinity')
    AND q.slot < coalesce($3::timestamptz, 'infinity')
    AND q.slot >= coalesce($5::timestamptz, '-infinity')
    AND ($5::timestamptz IS NULL
         OR q.slot <> $5::timestamptz
         OR ROW(q.width COLLATE "C", q.biz_type) > ROW($6::text, $7::text))
    AND ($7::text IS NULL OR true)
  ORDER BY q.slot, q.width COLLATE "C", q.biz_type
  LIMIT $4::integer) q
ORDER BY q.slot, q.width COLLATE "C", q.biz_type
