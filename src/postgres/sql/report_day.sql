-- Report: events and lateness by day of UTC and type. Its parameters: see report_page.
-- Index: the primary keys of both tables.
SELECT to_jsonb(q) || jsonb_build_object('slot', {{iso time = q.slot}})
FROM (
  SELECT s.slot, t.name AS biz_type, {{report_events of = s}}, h.buckets
  {{report_slots grain = 3}}) q
{{report_page time = q.slot | keys = q.biz_type | seen = $6::text}}
