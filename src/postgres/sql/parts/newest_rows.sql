-- The newest {{window}} rows of {{table}} that fit {{below}}.
(SELECT * FROM {{table}} j WHERE {{below}} ORDER BY j.job_id DESC LIMIT {{window}})
