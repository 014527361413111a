-- The newest jobs of business keys, each key with a beginning ($4) and a limit ($5) of its own. Of each key the newest $6
-- jobs of any type are read; n numbers them. Number $6 comes whatever its type: it says where the next page begins. The
-- job with which the attributes of the list (bytes) reach $7 is the last that comes.
-- Index: _biz, which gives the order (job_id + 0). Hazard: by job_id alone the planner may read _id from its end instead,
-- and with it all jobs of a day.
SELECT l.*, k.ord
FROM unnest($1::smallint[], $2::text[], $3::integer[], $4::bigint[], $5::integer[], $6::integer[])
       WITH ORDINALITY k (shard, biz_id, type_id, below, most, most_read, ord)
CROSS JOIN LATERAL (
  SELECT x.*, x.bytes >= $7::integer AS is_full
  FROM (
    SELECT u.*, row_number() OVER w AS n, sum(u.size) OVER w AS bytes
    FROM (
      (SELECT {{live_columns}}, j.job_id + 0 AS place, {{attribute_bytes}} AS size
       FROM tocsin.job_live j
       WHERE j.shard = k.shard AND j.biz_id = k.biz_id AND j.job_id + 0 < k.below
       ORDER BY j.job_id + 0 DESC
       LIMIT k.most_read)
      UNION ALL
      (SELECT {{history_columns}}, j.job_id + 0 AS place, {{attribute_bytes}} AS size
       FROM tocsin.job_history j
       WHERE j.biz_id = k.biz_id AND j.job_id + 0 < k.below
       ORDER BY j.job_id + 0 DESC
       LIMIT k.most_read)
      ORDER BY place DESC
      LIMIT k.most_read) u
    WINDOW w AS (ORDER BY u.place DESC ROWS UNBOUNDED PRECEDING)) x
  WHERE x.bytes - x.size < $7::integer AND ({{of_key}} OR x.n = k.most_read)
  ORDER BY x.place DESC
  LIMIT k.most) l
