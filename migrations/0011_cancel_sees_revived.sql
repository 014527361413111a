-- As before, but a job that is revived meanwhile is never "not found": live tables and history are read with one snapshot. One that is found
-- pending then was not when it was to be deleted (it came back from history, from a claim, or its shard went on), so it is tried again; what
-- stays undeletable is a shard that stands still since a REPEATABLE READ transaction began.
CREATE OR REPLACE FUNCTION tocsin.cancel_job(job_id bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
#variable_conflict use_variable
DECLARE
  job     tocsin.job_live;
  entry   tocsin.outbox;
  status_ smallint;
  shard_  smallint := (job_id & 1023)::smallint;
  now_    timestamptz := clock_timestamp();
BEGIN
  IF job_id <= 0 THEN
    RAISE EXCEPTION 'job_id must be positive' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  FOR tries IN 1..3 LOOP
    DELETE FROM tocsin.job_live j WHERE j.shard = shard_ AND j.job_id = job_id AND j.status = 0 RETURNING * INTO job;
    IF FOUND THEN
      IF to_regclass('tocsin.job_history_cancelled_' || to_char(now_, 'YYYYMMDD')) IS NULL THEN
        PERFORM tocsin.ensure_history(now_::date, now_::date);
      END IF;
      INSERT INTO tocsin.job_history (job_id, action_time, fire_at, gmt_create, started_at, finished_at, type_id, shard, status, attempts,
                                      max_attempts, biz_id, idempotency_key, body_hash, node, traceparent, attribute, errors)
      VALUES (job.job_id, job.action_time, job.fire_at, job.gmt_create, job.started_at, now_, job.type_id, job.shard, 3, job.attempts,
              job.max_attempts, job.biz_id, job.idempotency_key, job.body_hash, job.node, job.traceparent, job.attribute, job.errors);
      INSERT INTO tocsin.job_count_delta VALUES (job.type_id, 0, -1), (job.type_id, 3, 1);
      RETURN 'cancelled';
    END IF;
    EXIT WHEN NOT tocsin.lives_here(shard_);
    SELECT f.status INTO status_ FROM (
      SELECT j.status FROM tocsin.job_live j WHERE j.shard = shard_ AND j.job_id = job_id
      UNION ALL
      SELECT h.status FROM tocsin.job_history h WHERE h.job_id = job_id) f LIMIT 1;
    EXIT WHEN NOT FOUND;
    IF status_ = 1 THEN
      RETURN 'running';
    ELSIF status_ > 1 THEN
      RETURN 'finished';
    END IF;
    IF tries = 3 THEN
      RAISE EXCEPTION 'job % changes all the time: cancel it again', job_id USING ERRCODE = 'serialization_failure';
    END IF;
  END LOOP;
  UPDATE tocsin.outbox o SET is_cancelled = true
   WHERE o.job_id = job_id AND o.claimed_by IS NULL AND o.settled_at IS NULL AND NOT o.is_cancelled;
  IF FOUND THEN
    RETURN 'cancelled';
  END IF;
  SELECT * INTO entry FROM tocsin.outbox o WHERE o.job_id = job_id;
  IF entry.is_cancelled THEN
    RETURN 'finished';
  ELSIF entry.error IS NOT NULL THEN
    RETURN 'not found';
  ELSIF entry.existing_job_id IS NOT NULL THEN
    RAISE EXCEPTION 'job % was not created: job % had its idempotency key', job_id, entry.existing_job_id
      USING ERRCODE = 'TC001', HINT = 'Cancel that one.';
  ELSIF entry.job_id IS NOT NULL THEN
    RAISE EXCEPTION 'job % is on its way to another database', job_id
      USING ERRCODE = 'TC001', HINT = 'Cancel it there, or by REST on any node.';
  ELSIF NOT tocsin.lives_here(shard_) THEN
    PERFORM tocsin.refuse_shard(shard_);
  END IF;
  RETURN 'not found';
END $$;
