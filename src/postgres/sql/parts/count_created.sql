-- Counts new rows ins. Event 1: created.
INSERT INTO tocsin.job_count_delta (type_id, status, n, detail, event)
SELECT type_id, 0, count(*), tocsin.created_detail(action_time, gmt_create), 1::smallint
FROM ins
GROUP BY 1, 4
