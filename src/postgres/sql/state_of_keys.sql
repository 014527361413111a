-- Of business keys, after cancel_keys: (ordinal, job_id, status) of what is live, up to $4 + 1, and 2 for the newest $5
-- + 1 of what has ended.
-- Index: _biz, which gives the order.
SELECT k.ord, l.job_id, l.status
FROM {{business_keys}}
CROSS JOIN LATERAL (
  (SELECT j.job_id, j.status
   FROM tocsin.job_live j
   WHERE j.shard = k.shard AND {{of_key}}
   ORDER BY j.job_id
   LIMIT $4::integer + 1)
  UNION ALL
  (SELECT j.job_id, 2::smallint
   FROM tocsin.job_history j
   WHERE {{of_key}}
   ORDER BY j.job_id DESC
   LIMIT $5::integer + 1)) l
