-- Report: how far ahead the jobs of the UTC days from $2 to $3 were created, by type, in buckets.
-- Index: the primary key. Hazard: a year has 200,000 rows, so days are compared as days, and names come last.
SELECT to_jsonb(q)
FROM (
  SELECT t.name AS biz_type, CASE d.bucket WHEN 0 THEN 0 ELSE 1000 * 2 ^ (d.bucket - 1) END AS from_ms,
         1000 * 2 ^ d.bucket AS to_ms, d.n
  FROM (
    SELECT d.type_id, d.bucket, sum(d.n)::bigint AS n
    FROM tocsin.report_delay_day d
    WHERE d.day > (SELECT ((coalesce($2::timestamptz, '-infinity') - interval '1 microsecond') AT TIME ZONE 'UTC')::date)
      AND d.day <= (SELECT ((coalesce($3::timestamptz, 'infinity') - interval '1 microsecond') AT TIME ZONE 'UTC')::date)
    GROUP BY 1, 2) d
  JOIN tocsin.biz_type t USING (type_id)) q
{{report_unpaged}}
