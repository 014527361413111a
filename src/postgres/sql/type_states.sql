-- Of each type: its jobs by status, and for how many seconds its oldest due job has been due (0 while it is paused).
-- Index: _due, by lane; the tables of counts are small. Hazard: all counts come in one list, and each type is looked
-- up (OFFSET 0): a join would compare every type with every count.
WITH c AS MATERIALIZED (
  SELECT c.type_id,
         ARRAY[sum(c.n) FILTER (WHERE c.status = 0), sum(c.n) FILTER (WHERE c.status = 1),
               sum(c.n) FILTER (WHERE c.status = 2), sum(c.n) FILTER (WHERE c.status = 3),
               sum(c.n) FILTER (WHERE c.status = 4)]::bigint[]::text AS n,
         min(c.first_at) AS first_at
  FROM (
    SELECT type_id, status, n, NULL::timestamptz AS first_at
    FROM tocsin.job_count
    UNION ALL
    SELECT type_id, status, n, NULL
    FROM tocsin.job_count_delta
    WHERE status IS NOT NULL
    UNION ALL
    SELECT type_id, NULL, 0, first_at
    FROM tocsin.lanes_due()
    UNION ALL
    SELECT b.type_id, v.status::smallint, 0, NULL
    FROM tocsin.biz_type b, generate_series(0, 4) v (status)) c
  GROUP BY c.type_id)
SELECT t.name, c.n,
       CASE
         WHEN t.paused AND (t.paused_until IS NULL OR t.paused_until > statement_timestamp()) THEN 0
         ELSE coalesce(date_part('epoch', statement_timestamp() - c.first_at), 0)
       END
FROM c
CROSS JOIN LATERAL (
  SELECT *
  FROM tocsin.biz_type t
  WHERE t.type_id = c.type_id AND t.removed_at IS NULL
  OFFSET 0) t
ORDER BY t.type_id
