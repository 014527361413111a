-- SQL callers create jobs in whichever database their business is in. A job whose shard lives in another one waits in the outbox, in
-- the caller's transaction, until a node has handed it over: once, whatever dies meanwhile.

CREATE TABLE tocsin.outbox (
  job_id          bigint PRIMARY KEY,  -- the job's; drawn here, and nowhere else (ADR 0011)
  shard           smallint NOT NULL,
  type_id         integer NOT NULL,
  max_attempts    smallint NOT NULL,
  is_cancelled    boolean NOT NULL DEFAULT false,
  action_time     timestamptz NOT NULL,
  gmt_create      timestamptz NOT NULL,
  biz_id          text COLLATE "C" NOT NULL,
  idempotency_key text COLLATE "C",
  body_hash       bigint,
  attribute       jsonb,
  claimed_by      bigint,       -- who hands it over; NULL: nobody has tried yet, so it can be cancelled here
  claimed_at      timestamptz,
  settled_at      timestamptz,  -- it became no job, and the next two say why
  existing_job_id bigint,       -- the job that had the key
  error           text          -- the shard's database refused it
) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX outbox_due ON tocsin.outbox (shard, action_time, job_id) WHERE settled_at IS NULL;
CREATE INDEX outbox_settled ON tocsin.outbox (settled_at) WHERE settled_at IS NOT NULL;
CREATE UNIQUE INDEX outbox_key ON tocsin.outbox (biz_id, type_id, idempotency_key) WHERE idempotency_key IS NOT NULL AND settled_at IS NULL;

-- In the shard's database: the jobs that came out of other databases' outboxes. A row stays until its entry has been gone for longer than
-- anybody can have it in his hands.
CREATE TABLE tocsin.relayed (
  job_id     bigint PRIMARY KEY,
  source     smallint NOT NULL,     -- the place of the outbox
  gmt_create timestamptz NOT NULL,  -- of the entry: another one with this id is another job
  relayed_at timestamptz NOT NULL,
  gone_at    timestamptz            -- its entry was found gone
) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

CREATE VIEW tocsin.outbox_entry AS
  SELECT o.job_id, o.biz_id, t.name AS biz_type,
         CASE WHEN o.error IS NOT NULL THEN 'refused' WHEN o.existing_job_id IS NOT NULL THEN 'existing'
              WHEN o.claimed_by IS NOT NULL THEN 'relaying' ELSE 'waiting' END AS state,
         o.error, o.existing_job_id, o.is_cancelled, o.action_time, o.gmt_create, o.settled_at, o.attribute, o.idempotency_key, o.shard
  FROM tocsin.outbox o JOIN tocsin.biz_type t USING (type_id);
COMMENT ON VIEW tocsin.outbox_entry IS 'Jobs created here whose shard lives in another database, and that have not become jobs there';

CREATE FUNCTION tocsin.put_in_outbox(id bigint, kind tocsin.biz_type, biz_id text, action_time timestamptz, created timestamptz, attribute jsonb,
                                     idempotency_key text, hash bigint)
RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
  found_ record;
BEGIN
  INSERT INTO tocsin.outbox (job_id, shard, type_id, max_attempts, action_time, gmt_create, biz_id, idempotency_key, body_hash, attribute)
  VALUES (id, (id & 1023)::smallint, kind.type_id, kind.max_attempts, action_time, created, biz_id, idempotency_key, hash, attribute)
  ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    SELECT o.job_id, o.body_hash INTO found_ FROM tocsin.outbox o
     WHERE o.biz_id = biz_id AND o.type_id = kind.type_id AND o.idempotency_key = idempotency_key AND o.settled_at IS NULL;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'idempotency_key: a concurrent transaction holds this key' USING ERRCODE = 'serialization_failure';
    END IF;
    IF found_.body_hash IS DISTINCT FROM hash THEN
      RAISE EXCEPTION 'idempotency_key: job % has this key and another body', found_.job_id USING ERRCODE = 'unique_violation';
    END IF;
    RETURN found_.job_id;
  END IF;
  IF action_time < created + interval '6 seconds' THEN
    NOTIFY tocsin_outbox;
  END IF;
  RETURN id;
END $$;
REVOKE ALL ON FUNCTION tocsin.put_in_outbox(bigint, tocsin.biz_type, text, timestamptz, timestamptz, jsonb, text, bigint) FROM PUBLIC;

-- As before, but for a job whose shard lives in another database: it goes through the outbox, and the id is that of the job to be.
-- The insert itself looks where the shard lives: it has the table's lock then, so no shard can leave between the look and the row.
CREATE OR REPLACE FUNCTION tocsin.create_job(biz_type text, biz_id text, action_time timestamptz, attribute jsonb DEFAULT NULL, idempotency_key text DEFAULT NULL)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
  kind   tocsin.biz_type;
  target smallint;
  id     bigint;
  now_   timestamptz := clock_timestamp();
  found_ record;
  hash   bigint;
BEGIN
  SELECT * INTO kind FROM tocsin.biz_type t WHERE t.name = biz_type AND t.removed_at IS NULL;
  IF kind.type_id IS NULL THEN
    RAISE EXCEPTION 'biz_type: unknown type %', quote_nullable(biz_type) USING ERRCODE = 'foreign_key_violation';
  END IF;
  IF biz_id IS NULL OR octet_length(biz_id) NOT BETWEEN 1 AND 128 THEN
    RAISE EXCEPTION 'biz_id: must have 1 to 128 bytes' USING ERRCODE = 'check_violation';
  END IF;
  IF idempotency_key IS NOT NULL AND octet_length(idempotency_key) NOT BETWEEN 1 AND 256 THEN
    RAISE EXCEPTION 'idempotency_key: must have 1 to 256 bytes' USING ERRCODE = 'check_violation';
  END IF;
  IF action_time IS NULL OR action_time < '2000-01-01 00:00:00+00' OR action_time > now_ + interval '50 years' THEN
    RAISE EXCEPTION 'action_time: must lie between 2000-01-01 and 50 years ahead' USING ERRCODE = 'datetime_field_overflow';
  END IF;
  IF octet_length(attribute::text) > 65536 THEN
    RAISE EXCEPTION 'attribute: larger than 64 KiB' USING ERRCODE = 'program_limit_exceeded';
  END IF;
  target := tocsin.shard_of(biz_id, tocsin.shard_count());
  id := nextval('tocsin.job_seq') * 1024 + target;
  IF idempotency_key IS NOT NULL THEN
    hash := tocsin.body_hash('at ' || (extract(epoch FROM action_time) * 1000000)::bigint, attribute, NULL);
  END IF;
  INSERT INTO tocsin.job_live AS j (job_id, action_time, fire_at, gmt_create, gmt_modified, type_id, shard, max_attempts, biz_id, idempotency_key,
                               body_hash, attribute)
  SELECT id, action_time, greatest(action_time, now_), now_, now_, kind.type_id, target, kind.max_attempts, biz_id, idempotency_key, hash, attribute
    FROM tocsin.place p WHERE coalesce(target = ANY (p.shards), true)
  ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    PERFORM FROM tocsin.job_live j WHERE j.shard = target AND j.job_id = id;
    IF FOUND THEN
      RAISE EXCEPTION 'job_id: % was drawn twice', id USING ERRCODE = 'serialization_failure';
    END IF;
    IF idempotency_key IS NULL OR NOT tocsin.lives_here(target) THEN
      RETURN tocsin.put_in_outbox(id, kind, biz_id, action_time, now_, attribute, idempotency_key, hash);
    END IF;
    id := NULL;
  END IF;
  IF idempotency_key IS NOT NULL THEN
    -- A statement of its own: its snapshot sees a job that was finished while the insert waited for it.
    SELECT h.job_id, h.body_hash INTO found_ FROM (
      SELECT j.job_id, j.body_hash, j.type_id, j.idempotency_key FROM tocsin.job_live j
       WHERE j.shard = target AND j.biz_id = biz_id AND j.job_id IS DISTINCT FROM id
      UNION ALL
      SELECT h.job_id, h.body_hash, h.type_id, h.idempotency_key FROM tocsin.job_history h WHERE h.biz_id = biz_id) h
    WHERE h.type_id = kind.type_id AND h.idempotency_key = idempotency_key LIMIT 1;
    IF FOUND THEN
      IF id IS NOT NULL THEN
        DELETE FROM tocsin.job_live j WHERE j.shard = target AND j.job_id = id;
      END IF;
      IF found_.body_hash IS DISTINCT FROM hash THEN
        RAISE EXCEPTION 'idempotency_key: job % has this key and another body', found_.job_id USING ERRCODE = 'unique_violation';
      END IF;
      RETURN found_.job_id;
    END IF;
  END IF;
  IF id IS NULL THEN
    RAISE EXCEPTION 'idempotency_key: a concurrent transaction holds this key' USING ERRCODE = 'serialization_failure';
  END IF;
  INSERT INTO tocsin.job_count_delta VALUES (kind.type_id, 0, 1);
  IF action_time < now_ + interval '6 seconds' THEN
    -- job, type and due time: the node that owns the shard needs no read to put it on its wheel.
    PERFORM pg_notify('tocsin_due', format('%s %s %s', id, kind.type_id, (extract(epoch FROM greatest(action_time, now_)) * 1000000)::bigint));
  END IF;
  RETURN id;
END $$;

-- As before, but for an entry of the outbox that nobody has begun to hand over: it becomes a cancelled job there, as the record.
CREATE OR REPLACE FUNCTION tocsin.cancel_job(job_id bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
#variable_conflict use_variable
DECLARE
  job    tocsin.job_live;
  entry  tocsin.outbox;
  shard_ smallint := (job_id & 1023)::smallint;
  now_   timestamptz := clock_timestamp();
BEGIN
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
  IF tocsin.lives_here(shard_) THEN
    PERFORM 1 FROM tocsin.job_live j WHERE j.shard = shard_ AND j.job_id = job_id;
    IF FOUND THEN
      RETURN 'running';
    END IF;
    PERFORM 1 FROM tocsin.job_history h WHERE h.job_id = job_id;
    IF FOUND THEN
      RETURN 'finished';
    END IF;
  END IF;
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

-- In the shards' database: makes jobs of entries of another database's outbox, those that are none yet. One row per entry, in order; nothing
-- but the id: it was made before. `valid_until`: by this database's clock; after it the entry may have been handed over by somebody else so long
-- ago that nothing here remembers it. Whoever holds a row or a key is not waited for long: the caller tries each entry alone then.
CREATE FUNCTION tocsin.take_over(source smallint, valid_until timestamptz, job_ids bigint[], type_ids integer[], max_attempts smallint[], cancelled boolean[],
                                 action_times timestamptz[], created timestamptz[], biz_ids text[], keys text[], hashes bigint[], attributes text[])
RETURNS TABLE (job_id bigint, fire_at timestamptz, existing_job_id bigint, error text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '500ms' AS $$
#variable_conflict use_variable
DECLARE
  entry  record;
  found_ record;
  shard_ smallint;
  is_new boolean;
  now_   timestamptz := clock_timestamp();
BEGIN
  IF now_ > valid_until THEN
    RAISE EXCEPTION 'the outbox was read too long ago' USING ERRCODE = 'serialization_failure';
  END IF;
  IF EXISTS (SELECT FROM unnest(type_ids) t WHERE NOT EXISTS (SELECT FROM tocsin.biz_type b WHERE b.type_id = t)) THEN
    RAISE EXCEPTION 'a type is not mirrored here yet' USING ERRCODE = 'serialization_failure';
  END IF;
  FOR entry IN SELECT * FROM unnest(job_ids, type_ids, max_attempts, cancelled, action_times, created, biz_ids, keys, hashes, attributes)
               e (job_id, type_id, max_attempts, is_cancelled, action_time, gmt_create, biz_id, key, body_hash, attribute) LOOP
    job_id := entry.job_id;
    fire_at := NULL;
    existing_job_id := NULL;
    error := NULL;
    shard_ := (job_id & 1023)::smallint;
    INSERT INTO tocsin.relayed (job_id, source, gmt_create, relayed_at) VALUES (job_id, source, entry.gmt_create, now_) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
      -- A standby that took over without the last commits draws numbers again.
      PERFORM FROM tocsin.relayed r WHERE r.job_id = job_id AND r.source = source AND r.gmt_create = entry.gmt_create;
      IF NOT FOUND THEN
        error := 'its job_id is that of another job';
      END IF;
      RETURN NEXT;
      CONTINUE;
    END IF;
    INSERT INTO tocsin.job_live AS j (job_id, action_time, fire_at, gmt_create, gmt_modified, type_id, shard, max_attempts, biz_id, idempotency_key,
                                 body_hash, attribute)
    VALUES (job_id, entry.action_time, greatest(entry.action_time, now_), entry.gmt_create, now_, entry.type_id, shard_, entry.max_attempts, entry.biz_id,
            entry.key, entry.body_hash, entry.attribute::jsonb)
    ON CONFLICT DO NOTHING;
    is_new := FOUND;
    IF entry.key IS NOT NULL THEN
      -- As in create_job.
      SELECT h.job_id, h.body_hash INTO found_ FROM (
        SELECT j.job_id, j.body_hash, j.type_id, j.idempotency_key FROM tocsin.job_live j
         WHERE j.shard = shard_ AND j.biz_id = entry.biz_id AND j.job_id <> job_id
        UNION ALL
        SELECT h.job_id, h.body_hash, h.type_id, h.idempotency_key FROM tocsin.job_history h WHERE h.biz_id = entry.biz_id) h
      WHERE h.type_id = entry.type_id AND h.idempotency_key = entry.key LIMIT 1;
      IF FOUND THEN
        IF is_new THEN
          DELETE FROM tocsin.job_live j WHERE j.shard = shard_ AND j.job_id = job_id;
        END IF;
        DELETE FROM tocsin.relayed r WHERE r.job_id = job_id;  -- asked again, it answers the same again
        existing_job_id := found_.job_id;
        IF found_.body_hash IS DISTINCT FROM entry.body_hash THEN
          error := format('idempotency_key: job %s has this key and another body', found_.job_id);
        END IF;
        RETURN NEXT;
        CONTINUE;
      END IF;
    END IF;
    IF NOT is_new AND entry.key IS NULL THEN
      DELETE FROM tocsin.relayed r WHERE r.job_id = job_id;
      error := 'its job_id is that of another job';
      RETURN NEXT;
      CONTINUE;
    ELSIF NOT is_new THEN
      RAISE EXCEPTION 'idempotency_key: a concurrent transaction holds this key' USING ERRCODE = 'serialization_failure';
    END IF;
    INSERT INTO tocsin.job_count_delta VALUES (entry.type_id, 0, 1);
    IF entry.is_cancelled THEN
      PERFORM tocsin.cancel_job(job_id);
    ELSE
      fire_at := greatest(entry.action_time, now_);
    END IF;
    RETURN NEXT;
  END LOOP;
END $$;
REVOKE ALL ON FUNCTION tocsin.take_over(smallint, timestamptz, bigint[], integer[], smallint[], boolean[], timestamptz[], timestamptz[], text[], text[], bigint[], text[])
  FROM PUBLIC;
