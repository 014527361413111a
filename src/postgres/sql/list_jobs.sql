-- The newest {{limit}} jobs of {{rows}}, which is list_of_table once, or twice (list_of_both). The job with which the
-- attributes of the list (bytes) reach {{most_bytes}} is the last that comes; is_cut says so.
-- Index: with a biz_id _biz of each table, else _id: both have the newest at their end.
SELECT *
FROM (
  SELECT u.*, u.bytes >= {{most_bytes}} AS is_cut
  FROM (
    SELECT n.*, sum(n.size) OVER (ORDER BY n.job_id DESC ROWS UNBOUNDED PRECEDING) AS bytes
    FROM (
      SELECT j.*, {{attribute_bytes_of_any_type}} AS size
      FROM ({{rows}}) j
      ORDER BY j.job_id DESC
      LIMIT {{limit}}) n) u
  WHERE u.bytes - u.size < {{most_bytes}}) x
ORDER BY x.job_id DESC
