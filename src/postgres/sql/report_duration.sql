-- Report: how long attempts took, by hour, type and outcome. Its parameters: see report_page.
-- Index: the primary keys of both tables.
SELECT to_jsonb(q) || jsonb_build_object('slot', {{iso time = q.slot}})
FROM (
  SELECT d.slot, t.name AS biz_type, CASE d.outcome WHEN 2 THEN 'done' WHEN 4 THEN 'dead' ELSE 'retry' END AS outcome,
         d.n, d.max_ms, h.buckets
  FROM tocsin.report_duration_hour d
  JOIN tocsin.biz_type t USING (type_id)
  LEFT JOIN tocsin.report_histogram h
    ON h.kind = d.outcome AND h.grain = 2 AND h.slot = d.slot AND h.type_id = d.type_id) q
{{report_page time = q.slot | keys = q.biz_type, q.outcome COLLATE "C" | seen = $6::text, $7::text}}
