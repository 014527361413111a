-- Of business keys, after cancel_keys: (ordinal, job_id, status) of what is live and of what has ended.
-- Index: _biz, which gives the order.
SELECT k.ord, l.job_id, l.status
FROM {{business_keys}}
CROSS JOIN LATERAL (
  SELECT x.job_id, x.status
  FROM ({{live_of_key}}) x
  UNION ALL
  SELECT x.job_id, x.status
  FROM ({{ended_of_key}}) x) l
