-- Report: lateness by hour and type. Its parameters: see report_page.
-- Index: the primary keys of both tables.
SELECT to_jsonb(q) || jsonb_build_object('slot', {{iso time = q.slot}})
FROM (
  SELECT s.slot, t.name AS biz_type, s.started AS n, s.max_ms, h.buckets
  {{report_slots grain = 2}} AND s.started > 0) q
{{report_page time = q.slot | keys = q.biz_type | seen = $6::text}}
