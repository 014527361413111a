-- Report: events and lateness by day of the time zone $8 and type; without $2 the last 31 days. Its parameters: see
-- report_page.
-- Index: the primary keys. Hazard: the histograms of the rows on the page alone are merged. They come from hours, or
-- from quarters of an hour where days begin between hours.
SELECT to_jsonb(q) || jsonb_build_object('slot', {{iso time = q.slot}})
FROM (
  SELECT d.*,
         (SELECT tocsin.merge_histograms(tocsin.histogram_concat(h.buckets), '{}')
          FROM tocsin.report_histogram h
          JOIN tocsin.biz_type t USING (type_id)
          WHERE h.kind = 0
            AND t.name = d.biz_type
            AND h.grain = CASE
              WHEN date_part('minute', d.slot AT TIME ZONE 'UTC') + date_part('minute', d.ends AT TIME ZONE 'UTC') = 0
                THEN 2
              ELSE 1
            END
            AND h.slot >= d.slot
            AND h.slot < d.ends) AS buckets
  FROM (
    SELECT d.slot, ((d.slot AT TIME ZONE $8::text) + interval '1 day') AT TIME ZONE $8::text AS ends, d.biz_type,
           {{report_events of = d}}
    FROM tocsin.report_day_at($8::text, coalesce($2::timestamptz, statement_timestamp() - interval '31 days'),
                              coalesce($3::timestamptz, 'infinity')) d) d) q
{{report_page time = q.slot | keys = q.biz_type | seen = $6::text}}
