-- As change_pending_together. {{lock}}: SKIP LOCKED; empty: waits for locked rows, at most lock_timeout.
-- Index: _id. Hazard: SKIP LOCKED in a materialized CTE, see claim. REQUIRES: each job once.
WITH c AS MATERIALIZED (
  SELECT k.*
  FROM {{changes_given}}
  JOIN tocsin.job_live j ON j.shard = k.shard AND j.job_id = k.job_id AND j.status = 0
  FOR UPDATE OF j {{lock}})
{{changed}}
