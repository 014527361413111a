-- The newest jobs of business keys, each key with a limit ($5) and a beginning ($4) of its own.
-- Index: _biz, which gives the order.
SELECT l.*, k.ord
FROM unnest($1::smallint[], $2::text[], $3::integer[], $4::bigint[], $5::integer[])
       WITH ORDINALITY k (shard, biz_id, type_id, below, most, ord)
CROSS JOIN LATERAL (
  SELECT *
  FROM (
    (SELECT {{live_columns}}
     FROM tocsin.job_live j
     WHERE j.shard = k.shard
       AND j.biz_id = k.biz_id
       AND j.job_id < k.below
       AND (k.type_id IS NULL OR j.type_id = k.type_id)
     ORDER BY j.job_id DESC
     LIMIT k.most)
    UNION ALL
    (SELECT {{history_columns}}
     FROM tocsin.job_history j
     WHERE j.biz_id = k.biz_id AND j.job_id < k.below AND (k.type_id IS NULL OR j.type_id = k.type_id)
     ORDER BY j.job_id DESC
     LIMIT k.most)) u
  ORDER BY u.job_id DESC
  LIMIT k.most) l
