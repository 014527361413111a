-- Report: what became of the jobs that were created on a day, by type. Its parameters: see report_page.
-- Index: the primary key.
SELECT to_jsonb(q) || jsonb_build_object('created_day', {{iso time = q.created_day}})
FROM (SELECT * FROM tocsin.report_outcome) q
{{report_page time = q.created_day | keys = q.biz_type | seen = $6::text}}
