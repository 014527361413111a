-- Due jobs $1, $2 of the types $4 -> done in one statement: the rows go from the live table to history. All or none:
-- gives up (55P03) when it waits for a lock for 20 ms. One pass over the rows: the fast way.
-- Index: _id. REQUIRES: a transaction of its own, for the lock time-out stays for the rest of it.
WITH s AS MATERIALIZED (SELECT set_config('lock_timeout', '20ms', true)),
c AS MATERIALIZED (
  SELECT k.*
  FROM s,
       (SELECT unnest($1::smallint[]) AS shard, unnest($2::bigint[]) AS job_id, unnest($4::integer[]) AS type_id) k),
d AS (
  DELETE FROM {{table}} j USING c
  WHERE j.shard = c.shard AND j.job_id = c.job_id AND j.type_id + 0 = c.type_id AND {{is_due}}
    AND {{is_here shard = j.shard}}
  RETURNING j.*),
{{fired node = $3::text}}
