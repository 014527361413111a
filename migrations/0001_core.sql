-- The core schema. Applied once, inside one transaction; the migrator sets tocsin.shards before it runs.
-- Shard count and hash are recorded in tocsin.setting and never change afterwards.

CREATE SCHEMA tocsin;
COMMENT ON SCHEMA tocsin IS 'Tocsin: timeouts that businesses rely on';

CREATE TABLE tocsin.migration (
  version    integer PRIMARY KEY,
  name       text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE tocsin.setting (
  name  text PRIMARY KEY,
  value text NOT NULL
);
INSERT INTO tocsin.setting VALUES ('shards', current_setting('tocsin.shards'));

-- First 4 bytes of SHA-256 of the UTF-8 key, big-endian, modulo the shard count. DO NOT CHANGE:
-- stored rows sit where this function put them; src/core/shard.cc computes the same.
CREATE FUNCTION tocsin.shard_of(biz_id text, shards integer) RETURNS smallint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (('x' || pg_catalog.left(pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(biz_id, 'UTF8')), 'hex'), 8))::bit(32)::bigint % shards)::smallint;

CREATE FUNCTION tocsin.shard_count() RETURNS integer
LANGUAGE sql STABLE PARALLEL SAFE
RETURN (SELECT s.value::integer FROM tocsin.setting s WHERE s.name = 'shards');

-- job_id = sequence * 1024 + shard. A node draws numbers in blocks, so ids are unique, not gapless.
CREATE SEQUENCE tocsin.job_seq AS bigint MAXVALUE 9007199254740991;

CREATE TABLE tocsin.biz_type (
  type_id      integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  name         text COLLATE "C" NOT NULL UNIQUE CHECK (octet_length(name) BETWEEN 1 AND 128),
  handler      jsonb NOT NULL,
  ttr_ms       bigint NOT NULL CHECK (ttr_ms > 0),
  max_attempts smallint NOT NULL CHECK (max_attempts BETWEEN 1 AND 1000),
  backoff      jsonb NOT NULL,
  max_running  integer CHECK (max_running > 0),
  rate_per_s   double precision CHECK (rate_per_s > 0),
  catch_up     jsonb NOT NULL,
  paused       boolean NOT NULL DEFAULT false,
  paused_until timestamptz,
  removed_at   timestamptz,  -- kept as long as jobs name it: a create may have been on its way when it was removed
  gmt_create   timestamptz NOT NULL DEFAULT clock_timestamp(),
  gmt_modified timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Pending and running jobs only. Status codes are stored: 0 pending, 1 running. DO NOT CHANGE.
-- No foreign key to biz_type: one hot parent row would cost a multixact per insert. One check, not seven: a statement over many shards
-- parses the checks of every table it writes to (a tenth of the cost of a create). Lengths and ranges are the writers' business.
-- Its tables come with 0002.
CREATE TABLE tocsin.job_live (
  job_id          bigint NOT NULL,
  action_time     timestamptz NOT NULL,
  fire_at         timestamptz NOT NULL,
  gmt_create      timestamptz NOT NULL,
  gmt_modified    timestamptz NOT NULL,
  started_at      timestamptz,
  claim_token     bigint,
  type_id         integer NOT NULL,
  shard           smallint NOT NULL,
  status          smallint NOT NULL DEFAULT 0,
  attempts        smallint NOT NULL DEFAULT 0,
  max_attempts    smallint NOT NULL,
  biz_id          text COLLATE "C" NOT NULL,
  idempotency_key text COLLATE "C",
  body_hash       bigint,
  node            text,
  traceparent     text,
  attribute       jsonb,
  errors          jsonb,
  CONSTRAINT state CHECK (status = (claim_token IS NOT NULL)::integer)
) PARTITION BY LIST (shard);

-- Finished jobs. 2 done, 3 cancelled, 4 dead. DO NOT CHANGE. One table per status and day of finish (UTC),
-- so that retention drops tables and deletes nothing.
CREATE TABLE tocsin.job_history (
  job_id          bigint NOT NULL,
  action_time     timestamptz NOT NULL,
  fire_at         timestamptz NOT NULL,
  gmt_create      timestamptz NOT NULL,
  started_at      timestamptz,
  finished_at     timestamptz NOT NULL,
  type_id         integer NOT NULL,
  shard           smallint NOT NULL,
  status          smallint NOT NULL,
  attempts        smallint NOT NULL,
  max_attempts    smallint NOT NULL,
  biz_id          text COLLATE "C" NOT NULL,
  idempotency_key text COLLATE "C",
  body_hash       bigint,
  node            text,
  traceparent     text,
  attribute       jsonb,
  errors          jsonb
) PARTITION BY LIST (status);
CREATE TABLE tocsin.job_history_done PARTITION OF tocsin.job_history FOR VALUES IN (2) PARTITION BY RANGE (finished_at);
CREATE TABLE tocsin.job_history_cancelled PARTITION OF tocsin.job_history FOR VALUES IN (3) PARTITION BY RANGE (finished_at);
CREATE TABLE tocsin.job_history_dead PARTITION OF tocsin.job_history FOR VALUES IN (4) PARTITION BY RANGE (finished_at);

CREATE FUNCTION tocsin.ensure_history(first_day date, last_day date) RETURNS void
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
      EXECUTE format('ALTER TABLE tocsin.%I ATTACH PARTITION tocsin.%I FOR VALUES FROM (%L) TO (%L)',
        'job_history_' || kind, leaf, day::text || ' 00:00:00+00', (day + 1)::text || ' 00:00:00+00');
    END LOOP;
  END LOOP;
END $$;
REVOKE EXECUTE ON FUNCTION tocsin.ensure_history(date, date) FROM PUBLIC;
SELECT tocsin.ensure_history((now() AT TIME ZONE 'UTC')::date, (now() AT TIME ZONE 'UTC')::date + 7);

-- Counts: every statement that changes a status appends one row per type; a node folds them into job_count.
-- The sum of both is exact at every snapshot, and no report ever scans live tables.
CREATE TABLE tocsin.job_count (
  type_id integer NOT NULL,
  status  smallint NOT NULL,
  n       bigint NOT NULL,
  PRIMARY KEY (type_id, status)
);
CREATE TABLE tocsin.job_count_delta (
  type_id integer NOT NULL,
  status  smallint NOT NULL,
  n       integer NOT NULL
) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);

-- Live processes. node_id is drawn at process start; the name is only a label, so a restart under the same name is a new node.
CREATE TABLE tocsin.node (
  node_id      bigint PRIMARY KEY,
  name         text NOT NULL,
  state        text NOT NULL CHECK (state IN ('active', 'draining')),
  version      text NOT NULL,
  started_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
  heartbeat_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Tells the body of one create from another under the same idempotency key. time_asked is 'at <unix microseconds>' or
-- 'in <milliseconds>': the words of the caller, since a relative time becomes another instant on every repeat. DO NOT CHANGE: stored.
CREATE FUNCTION tocsin.body_hash(time_asked text, attribute jsonb, max_attempts integer) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN pg_catalog.hashtextextended(pg_catalog.concat_ws(E'\n', time_asked, coalesce(attribute::text, ''), coalesce(max_attempts::text, '')), 0);

-- Keeps the last 16 failures of a job.
CREATE FUNCTION tocsin.append_error(errors jsonb, at timestamptz, node text, attempt integer, message text) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE
RETURN (
  SELECT pg_catalog.jsonb_agg(e.value ORDER BY e.ordinality)
  FROM (SELECT value, ordinality
        FROM pg_catalog.jsonb_array_elements(coalesce(errors, '[]') || pg_catalog.jsonb_build_array(pg_catalog.jsonb_build_object(
          'at', pg_catalog.to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), 'node', node, 'attempt', attempt, 'message', message)))
             WITH ORDINALITY
        ORDER BY ordinality DESC LIMIT 16) e);

-- SQL users -----------------------------------------------------------------------------------------------------------

-- Every job, live or finished. Branches carry constant statuses, so that a filter on status reads one branch only.
CREATE VIEW tocsin.job AS
  SELECT j.job_id, j.biz_id, t.name AS biz_type, 'pending'::text AS status, j.action_time, j.fire_at, j.attempts, j.max_attempts,
         j.attribute, j.idempotency_key, j.shard, j.node, j.gmt_create, j.gmt_modified, j.started_at, NULL::timestamptz AS finished_at,
         round((extract(epoch FROM j.started_at - j.action_time) * 1000)::numeric, 3) AS lateness_ms, coalesce(j.errors, '[]'::jsonb) AS errors
  FROM tocsin.job_live j JOIN tocsin.biz_type t USING (type_id) WHERE j.status = 0
UNION ALL
  SELECT j.job_id, j.biz_id, t.name, 'running'::text, j.action_time, j.fire_at, j.attempts, j.max_attempts,
         j.attribute, j.idempotency_key, j.shard, j.node, j.gmt_create, j.gmt_modified, j.started_at, NULL::timestamptz,
         round((extract(epoch FROM j.started_at - j.action_time) * 1000)::numeric, 3), coalesce(j.errors, '[]'::jsonb)
  FROM tocsin.job_live j JOIN tocsin.biz_type t USING (type_id) WHERE j.status = 1
UNION ALL
  SELECT h.job_id, h.biz_id, t.name, 'done'::text, h.action_time, h.fire_at, h.attempts, h.max_attempts,
         h.attribute, h.idempotency_key, h.shard, h.node, h.gmt_create, h.finished_at, h.started_at, h.finished_at,
         round((extract(epoch FROM h.started_at - h.action_time) * 1000)::numeric, 3), coalesce(h.errors, '[]'::jsonb)
  FROM tocsin.job_history_done h JOIN tocsin.biz_type t USING (type_id)
UNION ALL
  SELECT h.job_id, h.biz_id, t.name, 'cancelled'::text, h.action_time, h.fire_at, h.attempts, h.max_attempts,
         h.attribute, h.idempotency_key, h.shard, h.node, h.gmt_create, h.finished_at, h.started_at, h.finished_at,
         round((extract(epoch FROM h.started_at - h.action_time) * 1000)::numeric, 3), coalesce(h.errors, '[]'::jsonb)
  FROM tocsin.job_history_cancelled h JOIN tocsin.biz_type t USING (type_id)
UNION ALL
  SELECT h.job_id, h.biz_id, t.name, 'dead'::text, h.action_time, h.fire_at, h.attempts, h.max_attempts,
         h.attribute, h.idempotency_key, h.shard, h.node, h.gmt_create, h.finished_at, h.started_at, h.finished_at,
         round((extract(epoch FROM h.started_at - h.action_time) * 1000)::numeric, 3), coalesce(h.errors, '[]'::jsonb)
  FROM tocsin.job_history_dead h JOIN tocsin.biz_type t USING (type_id);
COMMENT ON VIEW tocsin.job IS 'Every job, live or finished; status and type by name';

-- Counts by type and status, exact at every snapshot, without touching job tables.
CREATE VIEW tocsin.job_stats AS
  SELECT t.name AS biz_type, v.name AS status, coalesce(sum(c.n), 0)::bigint AS n
  FROM (SELECT * FROM tocsin.biz_type WHERE removed_at IS NULL) t
  CROSS JOIN (VALUES (0::smallint, 'pending'), (1, 'running'), (2, 'done'), (3, 'cancelled'), (4, 'dead')) v (status, name)
  LEFT JOIN (SELECT type_id, status, n FROM tocsin.job_count UNION ALL SELECT type_id, status, n FROM tocsin.job_count_delta) c
    ON c.type_id = t.type_id AND c.status = v.status
  GROUP BY t.name, v.status, v.name;
COMMENT ON VIEW tocsin.job_stats IS 'Number of jobs by type and status, from rollups';

-- Creates one job inside the caller's transaction: the order and its timeout commit together. Returns the job_id; the same
-- (biz_type, biz_id, idempotency_key) again returns the job_id of the first, and raises unique_violation when the body differs.
CREATE FUNCTION tocsin.create_job(biz_type text, biz_id text, action_time timestamptz, attribute jsonb DEFAULT NULL, idempotency_key text DEFAULT NULL)
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
  VALUES (id, action_time, greatest(action_time, now_), now_, now_, kind.type_id, target, kind.max_attempts, biz_id, idempotency_key, hash, attribute)
  ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
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

-- Cancels inside the caller's transaction. Returns 'cancelled', 'running', 'finished' or 'not found'.
CREATE FUNCTION tocsin.cancel_job(job_id bigint) RETURNS text
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
  PERFORM 1 FROM tocsin.job_live j WHERE j.shard = (job_id & 1023)::smallint AND j.job_id = job_id;
  IF FOUND THEN
    RETURN 'running';
  END IF;
  PERFORM 1 FROM tocsin.job_history h WHERE h.job_id = job_id;
  RETURN CASE WHEN FOUND THEN 'finished' ELSE 'not found' END;
END $$;
