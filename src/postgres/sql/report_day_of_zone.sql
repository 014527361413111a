-- Report: events and lateness by day of the time zone $8 and type; without $2 the last 31 days, with histograms unless
-- $9. Its other parameters: see report_page.
-- Index: the primary keys. Hazard: the histograms of the days and types on the page alone are merged, day by day as a
-- set. They come from hours, or from quarters of an hour where days begin between hours.
WITH p AS MATERIALIZED (
  SELECT q.*
  FROM tocsin.report_day_at($8::text, coalesce($2::timestamptz, statement_timestamp() - interval '31 days'),
                            coalesce($3::timestamptz, 'infinity')) q
  {{report_page time = q.slot | keys = q.biz_type | seen = $6::text}}),
k AS MATERIALIZED (
  SELECT k.slot, k.ends,
         CASE
           WHEN date_part('minute', k.slot AT TIME ZONE 'UTC') + date_part('minute', k.ends AT TIME ZONE 'UTC') = 0
             THEN 2
           ELSE 1
         END::smallint AS grain
  FROM (
    SELECT DISTINCT p.slot, ((p.slot AT TIME ZONE $8::text) + interval '1 day') AT TIME ZONE $8::text AS ends
    FROM p
    WHERE NOT $9::boolean) k),
h AS (
  SELECT k.slot, b.type_id, array_agg((b.bucket << 44) + b.n ORDER BY b.bucket) AS buckets
  FROM k
  CROSS JOIN LATERAL (
    SELECT h.type_id, v >> 44 AS bucket, sum(v & 17592186044415)::bigint AS n
    FROM tocsin.report_histogram h
    CROSS JOIN LATERAL unnest(h.buckets) v
    WHERE h.kind = 0
      AND h.grain = k.grain
      AND h.slot >= k.slot
      AND h.slot < k.ends
      AND h.type_id = ANY (ARRAY(SELECT t.type_id FROM tocsin.biz_type t WHERE t.name IN (SELECT p.biz_type FROM p)))
    GROUP BY 1, 2) b
  GROUP BY 1, 2)
SELECT to_jsonb(p) || jsonb_build_object('slot', {{iso time = p.slot}}, 'buckets', h.buckets)
FROM p
JOIN tocsin.biz_type t ON t.name = p.biz_type
LEFT JOIN h ON h.slot = p.slot AND h.type_id = t.type_id
ORDER BY p.slot DESC, p.biz_type
