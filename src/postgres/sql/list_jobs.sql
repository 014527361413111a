-- The newest {{limit}} jobs of {{rows}}, which is list_of_table once, or twice (list_of_both).
-- Index: with a biz_id _biz of each table, else _id: both have the newest at their end.
SELECT *
FROM ({{rows}}) j
ORDER BY j.job_id DESC
LIMIT {{limit}}
