-- The newest {{limit}} jobs of {{rows}}, which is list_of_table once, or twice (list_of_both). The job with which the
-- attributes of the list (bytes) reach {{most_bytes}} is the last that comes.
-- Index: with a biz_id _biz of each table, else _id: both have the newest at their end.
-- Hazard: each further level of subqueries costs a page of 100 jobs a tenth.
SELECT *
FROM (
  SELECT j.*, sum({{attribute_bytes_of_any_type}}) OVER newer AS bytes,
         sum({{attribute_bytes_of_any_type}}) OVER newer - {{attribute_bytes_of_any_type}} < {{most_bytes}} AS fits
  FROM ({{rows}}) j
  WINDOW newer AS (ORDER BY j.job_id DESC ROWS UNBOUNDED PRECEDING)) x
WHERE x.fits
ORDER BY x.job_id DESC
LIMIT {{limit}}
