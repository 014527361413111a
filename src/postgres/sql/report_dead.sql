-- Report: dead jobs by day, type and reason. Its parameters: see report_page.
-- Index: the primary key.
SELECT to_jsonb(q) || jsonb_build_object('slot', {{iso time = q.slot}}, 'first_at', {{iso time = q.first_at}},
                                         'last_at', {{iso time = q.last_at}},
                                         'sample_job_id', q.sample_job_id::text)
FROM (SELECT * FROM tocsin.report_dead) q
{{report_page time = q.slot | keys = q.biz_type, q.reason COLLATE "C" | seen = $6::text, $7::text}}
