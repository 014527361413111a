-- Report: how far ahead the jobs of the days from $2 to $3 were created, by type, in buckets.
-- Index: the primary key.
SELECT to_jsonb(q)
FROM (
  SELECT t.name AS biz_type, CASE d.bucket WHEN 0 THEN 0 ELSE 1000 * 2 ^ (d.bucket - 1) END AS from_ms,
         1000 * 2 ^ d.bucket AS to_ms, sum(d.n)::bigint AS n
  FROM tocsin.report_delay_day d
  JOIN tocsin.biz_type t USING (type_id)
  WHERE d.day::timestamp AT TIME ZONE 'UTC' >= coalesce($2::timestamptz, '-infinity')
    AND d.day::timestamp AT TIME ZONE 'UTC' < coalesce($3::timestamptz, 'infinity')
  GROUP BY t.name, d.bucket) q
{{report_unpaged}}
