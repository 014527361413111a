-- Moving a shard to another database: replication that knows rows by their id, a shard that stands still for a moment, and where
-- each move stands.

-- Logical replication knows rows by job_id alone: the shard is in it (job_id & 1023), so that a publication of one shard filters on it. It
-- costs a deleted row's id in the log, and only where wal_level = logical.
DO $$
DECLARE
  leaf text;
BEGIN
  FOR leaf IN SELECT p.relid::regclass::text FROM pg_partition_tree('tocsin.job_live') p WHERE p.isleaf
              UNION ALL SELECT p.relid::regclass::text FROM pg_partition_tree('tocsin.job_history') p WHERE p.isleaf AND p.level > 1 LOOP
    EXECUTE format('ALTER TABLE %s REPLICA IDENTITY USING INDEX %I', leaf, split_part(leaf, '.', 2) || '_id');
  END LOOP;
END $$;

-- As before, with the replica identity.
CREATE OR REPLACE FUNCTION tocsin.ensure_history(first_day date, last_day date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
DECLARE
  day date;
  kind text;
  leaf text;
BEGIN
  FOR day IN SELECT d::date FROM generate_series(first_day::timestamp, last_day::timestamp, interval '1 day') d LOOP
    FOREACH kind IN ARRAY ARRAY['done', 'cancelled', 'dead'] LOOP
      leaf := format('job_history_%s_%s', kind, to_char(day, 'YYYYMMDD'));
      CONTINUE WHEN to_regclass('tocsin.' || leaf) IS NOT NULL;
      -- Serialises with other creators of the same day; they find the table when they get the lock.
      PERFORM pg_advisory_xact_lock(hashtextextended('tocsin.ensure_history', 0));
      CONTINUE WHEN to_regclass('tocsin.' || leaf) IS NOT NULL;
      -- Made apart and then attached: PARTITION OF would take a lock on the parent that waits for every reader and stops every finish.
      EXECUTE format('CREATE TABLE tocsin.%I (LIKE tocsin.%I INCLUDING ALL)', leaf, 'job_history_' || kind);
      EXECUTE format('CREATE UNIQUE INDEX %I ON tocsin.%I (job_id)', leaf || '_id', leaf);
      EXECUTE format('CREATE INDEX %I ON tocsin.%I (biz_id)', leaf || '_biz', leaf);
      EXECUTE format('ALTER TABLE tocsin.%I REPLICA IDENTITY USING INDEX %I', leaf, leaf || '_id');
      EXECUTE format('ALTER TABLE tocsin.%I ATTACH PARTITION tocsin.%I FOR VALUES FROM (%L) TO (%L)',
        'job_history_' || kind, leaf, day::text || ' 00:00:00+00', (day + 1)::text || ' 00:00:00+00');
    END LOOP;
  END LOOP;
END $$;

-- At home, one row per move under way. The databases that it is about have one, too: whoever drives the move has the number `driver`,
-- and every step checks it where it works, so that a driver that was taken for dead changes nothing any more.
CREATE TABLE tocsin.move (
  shard      smallint PRIMARY KEY,
  source     smallint NOT NULL,
  target     smallint NOT NULL CHECK (target <> source),
  driver     bigint NOT NULL DEFAULT 1,
  state      text NOT NULL DEFAULT 'copying' CHECK (state IN ('copying', 'switching', 'switched', 'aborting')),  -- home's counts
  started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  counts     jsonb,                          -- at the source: what was taken off its counts
  is_counted boolean NOT NULL DEFAULT false  -- at the target: they were added to its own
);

-- The rows of a shard that stands still. Who claims, finishes or cancels finds that nothing changed, and asks again, so that a
-- batch goes on without them; a change that has no such answer is refused.
CREATE FUNCTION tocsin.keep_still() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP = 'DELETE' OR NEW.claim_token IS DISTINCT FROM OLD.claim_token THEN
    RETURN NULL;
  END IF;
  RAISE EXCEPTION 'shard % is moving to another database', OLD.shard USING ERRCODE = 'TC001', HINT = 'Try again in a moment.';
END $$;

-- After the commit of freeze_shard nothing of the shard changes here any more, and no change is on its way: it waits for every
-- transaction that has written.
CREATE FUNCTION tocsin.freeze_shard(shard smallint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
  leaf regclass := format('tocsin.job_live_%s', lpad((shard % 8)::text, 4, '0'))::regclass;
BEGIN
  IF EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = leaf AND t.tgname = 'keep_still_' || shard) THEN
    RETURN;
  END IF;
  PERFORM tocsin.set_shards_here(array_remove(coalesce(p.shards, ARRAY(SELECT s::smallint FROM generate_series(0, tocsin.shard_count() - 1) s)), shard))
     FROM tocsin.place p;
  EXECUTE format('CREATE TRIGGER %I BEFORE UPDATE OR DELETE ON %s FOR EACH ROW WHEN (OLD.shard = %s) EXECUTE FUNCTION tocsin.keep_still()',
                 'keep_still_' || shard, leaf, shard);
END $$;

-- The shard no longer stands still; unless it is opened, it does not live here.
CREATE FUNCTION tocsin.thaw_shard(shard smallint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
  leaf regclass := format('tocsin.job_live_%s', lpad((shard % 8)::text, 4, '0'))::regclass;
BEGIN
  IF EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = leaf AND t.tgname = 'keep_still_' || shard) THEN
    EXECUTE format('DROP TRIGGER %I ON %s', 'keep_still_' || shard, leaf);
  END IF;
END $$;

-- The shard lives here from now on.
CREATE FUNCTION tocsin.open_shard(shard smallint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
  here smallint[];
BEGIN
  IF tocsin.lives_here(shard) THEN
    RETURN;
  END IF;
  SELECT array_agg(s ORDER BY s) INTO here FROM tocsin.place p, unnest(p.shards || shard) s;
  PERFORM tocsin.set_shards_here(here);
END $$;

-- Takes the shard's jobs off the counts of this database, where it stands still; what they were. Once.
CREATE FUNCTION tocsin.take_counts(shard smallint) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
  taken jsonb := (SELECT m.counts FROM tocsin.move m WHERE m.shard = shard FOR UPDATE);
BEGIN
  IF taken IS NULL THEN
    SELECT coalesce(jsonb_agg(c), '[]') INTO taken FROM (
      SELECT j.type_id, j.status, count(*) AS n FROM (
        SELECT l.type_id, l.status FROM tocsin.job_live l WHERE l.shard = shard AND l.shard + 0 = shard
        UNION ALL SELECT h.type_id, h.status FROM tocsin.job_history h WHERE h.job_id & 1023 = shard) j GROUP BY 1, 2) c;
    UPDATE tocsin.move m SET counts = taken WHERE m.shard = shard;
    INSERT INTO tocsin.job_count_delta SELECT (c->>'type_id')::integer, (c->>'status')::smallint, -(c->>'n')::integer FROM jsonb_array_elements(taken) c;
  END IF;
  RETURN taken;
END $$;

-- Adds what take_counts told to the counts of this database. Once.
CREATE FUNCTION tocsin.add_counts(shard smallint, taken jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
BEGIN
  UPDATE tocsin.move m SET is_counted = true WHERE m.shard = shard AND NOT m.is_counted;
  IF FOUND THEN
    INSERT INTO tocsin.job_count_delta SELECT (c->>'type_id')::integer, (c->>'status')::smallint, (c->>'n')::integer FROM jsonb_array_elements(taken) c;
  END IF;
END $$;

-- Deletes a shard's rows from a table of jobs of a database where it does not live; how many. They are what replication
-- brought, or what was copied and counted: neither the counts nor what keeps them still minds. Superusers only.
CREATE FUNCTION tocsin.forget_shard(leaf regclass, shard smallint) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
  n bigint;
BEGIN
  IF tocsin.lives_here(shard) THEN
    RAISE EXCEPTION 'shard % lives here', shard;
  END IF;
  PERFORM set_config('session_replication_role', 'replica', true);
  EXECUTE format('DELETE FROM %s WHERE job_id & 1023 = %s', leaf, shard);
  GET DIAGNOSTICS n = ROW_COUNT;
  PERFORM set_config('session_replication_role', 'origin', true);
  RETURN n;
END $$;

REVOKE ALL ON FUNCTION tocsin.freeze_shard(smallint), tocsin.thaw_shard(smallint), tocsin.open_shard(smallint), tocsin.take_counts(smallint),
  tocsin.add_counts(smallint, jsonb), tocsin.forget_shard(regclass, smallint), tocsin.keep_still() FROM PUBLIC;

-- As before; a pending job that stands still is not "running".
CREATE OR REPLACE FUNCTION tocsin.cancel_job(job_id bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
#variable_conflict use_variable
DECLARE
  job  tocsin.job_live;
  now_ timestamptz := clock_timestamp();
BEGIN
  DELETE FROM tocsin.job_live j WHERE j.shard = (job_id & 1023)::smallint AND j.job_id = job_id AND j.status = 0 RETURNING * INTO job;
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
  IF NOT tocsin.lives_here((job_id & 1023)::smallint) THEN
    PERFORM tocsin.refuse_shard((job_id & 1023)::smallint);
  END IF;
  PERFORM 1 FROM tocsin.job_live j WHERE j.shard = (job_id & 1023)::smallint AND j.job_id = job_id;
  IF FOUND THEN
    RETURN 'running';
  END IF;
  PERFORM 1 FROM tocsin.job_history h WHERE h.job_id = job_id;
  RETURN CASE WHEN FOUND THEN 'finished' ELSE 'not found' END;
END $$;
