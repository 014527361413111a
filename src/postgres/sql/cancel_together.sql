-- pending -> cancelled for the jobs $1, $2. All or none: gives up (55P03) when a row stays locked for 50 ms. One pass
-- over the rows: the fast way.
-- Index: _id. Hazard: the ids come sorted, so that two that wait for each other's rows cannot deadlock. REQUIRES: a
-- transaction of its own, for the lock time-out stays for the rest of it.
WITH {{row_lock_wait}},
c AS MATERIALIZED (
  SELECT k.*
  FROM s, (SELECT unnest($1::smallint[]) AS shard, unnest($2::bigint[]) AS job_id) k),
{{delete_pending}}
SELECT {{history_columns}}
FROM j
