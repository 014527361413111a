-- dead -> pending for the jobs $1, due at once.
-- Index: _id of history. Hazards: SKIP LOCKED in a materialized CTE, see claim. The statement leaves out rows that another
-- transaction has locked, and waits when another transaction holds a key, see revive.
WITH c AS MATERIALIZED (
  SELECT h.job_id, h.finished_at, 0::bigint AS delay_us
  FROM tocsin.job_history_dead h
  WHERE h.job_id = ANY ($1::bigint[]) {{type_is_there}}
  ORDER BY h.job_id
  FOR UPDATE OF h SKIP LOCKED),
{{revive}}
SELECT {{live_columns}}
FROM j
