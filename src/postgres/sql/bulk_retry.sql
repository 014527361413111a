-- dead -> pending for jobs $1 of a bulk operation, due at once. REQUIRES: the transaction has locked the rows.
-- Index: _id of history. Hazard: waits when another transaction holds a key, see revive.
WITH c AS MATERIALIZED (
  SELECT h.job_id, h.finished_at, 0::bigint AS delay_us
  FROM unnest($1::bigint[]) k (job_id)
  JOIN tocsin.job_history_dead h ON h.job_id = k.job_id),
{{revive}}
SELECT j.job_id, j.type_id, j.fire_at
FROM j
