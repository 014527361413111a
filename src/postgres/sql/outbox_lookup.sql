-- Whether an entry waits for each job $1, or, where that is 0, for the key $2; in order.
-- Index: the primary key of tocsin.outbox for a job, outbox_biz for a key. Hazard: as EXISTS the planner may read the
-- whole outbox into a hash table, which costs what its backlog costs.
SELECT j.is_there IS NOT NULL OR k.is_there IS NOT NULL
FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY q (job_id, biz_id, ord)
LEFT JOIN LATERAL (
  SELECT true AS is_there
  FROM tocsin.outbox o
  WHERE q.job_id <> 0 AND o.job_id = q.job_id AND o.settled_at IS NULL
  LIMIT 1) j ON true
LEFT JOIN LATERAL (
  SELECT true AS is_there
  FROM tocsin.outbox o
  WHERE q.job_id = 0 AND o.biz_id = q.biz_id AND o.settled_at IS NULL
  LIMIT 1) k ON true
ORDER BY q.ord
