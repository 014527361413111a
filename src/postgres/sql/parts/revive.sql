-- dead -> pending, but for jobs of removed types: the rows c (job_id, finished_at, delay_us), each due after its delay.
-- Event 6: revived. Hazard: the insert waits for a transaction that creates a job with one of the keys. It finds the dead
-- job and undoes its own insert, but the key stays held until it ends. So a transaction with this part has a lock_wait.
d AS (
  DELETE FROM tocsin.job_history_dead h USING c
  WHERE h.job_id = c.job_id
    AND h.finished_at = c.finished_at
    AND tocsin.takes_jobs(h.type_id)
  RETURNING h.*, c.delay_us),
j AS (
  INSERT INTO tocsin.job_live (job_id, action_time, fire_at, gmt_create, gmt_modified, late_from, type_id, shard,
    max_attempts, biz_id, idempotency_key, body_hash, node, traceparent, attribute, errors)
  SELECT job_id, action_time, clock_timestamp() + delay_us * interval '1 microsecond', gmt_create, clock_timestamp(),
         greatest(action_time, clock_timestamp() + delay_us * interval '1 microsecond'), type_id, shard, max_attempts,
         biz_id, idempotency_key, body_hash, node, traceparent, attribute, errors
  FROM d
  RETURNING *),
n AS (
  {{count_left left = 4}}
  SELECT d.type_id, 0, count(*), tocsin.day_of(d.gmt_create) * 64, 6::smallint, NULL, NULL
  FROM d
  GROUP BY 1, 4)
