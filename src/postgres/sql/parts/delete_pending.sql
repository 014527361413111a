-- Deletes the pending jobs c, as d, and writes their rows of history j: they are cancelled.
d AS (
  DELETE FROM tocsin.job_live j USING c
  WHERE j.shard = c.shard AND j.job_id = c.job_id AND j.status = 0 AND {{is_here shard = j.shard}}
  RETURNING j.*),
{{cancelled}}
