-- The schema of Tocsin, from top to bottom in the order of docs/data_model.md:
--
--    1  Installation: settings, shards, ids
--    2  Types
--    3  Live jobs
--    4  History
--    5  Counts
--    6  Nodes and the shard map
--    7  Several databases
--    8  Limits
--    9  Outbox: jobs created by SQL whose shards live in another database
--   10  Moves of shards between databases
--   11  SQL interface: views, create_job, cancel_job
--   12  Role of sql handlers
--   13  Reports: tables, views, role of readers
--   14  Bulk operations
--
-- Until 0.1.0 is released, changes go here; afterwards into 0002_<what>.sql. Runs once, inside one transaction. The migrator sets tocsin.shards before it.
-- Names of variables that could be mistaken for columns end with an underscore.

-- 1. Installation ----------------------------------------------------------------------------------------------------

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
-- The timeline of the server's log that ids were last drawn on: tocsin.raise_ids().
INSERT INTO tocsin.setting VALUES ('timeline', left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8));

-- The shard of a biz_id: first 4 bytes of SHA-256 of its UTF-8 text, big-endian, modulo the shard count. DO NOT CHANGE:
-- stored rows are placed by this function. src/core/shard.cc computes the same. STABLE, as the other functions of
-- hot statements: PostgreSQL declares parts of their bodies stable, and then inlines them only into stable functions.
-- A function in SQL that is not inlined is planned again in every transaction, which costs 10 to 20 us. Functions with
-- a subquery are never inlined, so those are in PL/pgSQL, which keeps its plans.
CREATE FUNCTION tocsin.shard_of(biz_id text, shards integer) RETURNS smallint
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN (('x' || pg_catalog.left(pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(biz_id, 'UTF8')), 'hex'), 8))::bit(32)::bigint
        % shards)::smallint;

-- The number of shards never changes, so it is a constant: reading the setting would cost each create by SQL 3 us.
DO $$
BEGIN
  EXECUTE format('CREATE FUNCTION tocsin.shard_count() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN %s',
                 current_setting('tocsin.shards')::integer);
END $$;

-- job_id = sequence * 1024 + shard. Nodes draw numbers in blocks, so ids are unique but not gapless.
CREATE SEQUENCE tocsin.job_seq AS bigint MAXVALUE 9007199254740991;

-- 2. Types -----------------------------------------------------------------------------------------------------------

-- Written in the control database and mirrored, with their ids, to the other databases.
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
  slo          jsonb,                           -- {"lateness_ms", "share"}; NULL: no target
  paused       boolean NOT NULL DEFAULT false,
  paused_until timestamptz,
  -- When a removal began that has not ended: creates lock the row, see takes_jobs(). A copy with both times is removed
  -- here, and the control database has not decided yet.
  removal_at   timestamptz,
  removed_at   timestamptz,  -- the row stays: finished jobs refer to it
  gmt_create   timestamptz NOT NULL DEFAULT clock_timestamp(),
  gmt_modified timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Whether jobs of the type may become live: it is here and not removed. A true answer holds until the caller's transaction
-- ends. Every statement that makes jobs live asks it.
-- Creates do not lock the type: one hot row would cost a multixact per create. Instead a removal (PgTypeStore::remove)
-- sets removal_at, waits until all transactions have ended whose ids are older than that, and only then looks for live
-- jobs. Creates that see removal_at share a lock on the row, which the removal waits for. So this takes the transaction id
-- before it reads, and it is volatile: each of its statements has a snapshot of its own. A transaction that keeps one
-- snapshot always locks the row, and fails if a removal has begun since.
CREATE FUNCTION tocsin.takes_jobs(type_id integer) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_variable
DECLARE
  xid_       xid8 := pg_catalog.pg_current_xact_id();
  is_locked_ boolean;
  is_there_  boolean;
BEGIN
  SELECT t.removal_at IS NOT NULL OR pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.<>) 'read committed',
         t.removed_at IS NULL INTO is_locked_, is_there_
    FROM tocsin.biz_type t WHERE t.type_id OPERATOR(pg_catalog.=) type_id;
  IF is_locked_ THEN
    SELECT t.removed_at IS NULL INTO is_there_ FROM tocsin.biz_type t WHERE t.type_id OPERATOR(pg_catalog.=) type_id FOR KEY SHARE;
  END IF;
  RETURN coalesce(is_there_, false);
END $$;

-- 3. Live jobs -------------------------------------------------------------------------------------------------------

-- Pending and running jobs only. Status codes are stored: 0 pending, 1 running. DO NOT CHANGE.
-- No foreign key to biz_type: one hot parent row would cost a multixact per insert. One check, not seven: a statement
-- over many shards parses the checks of every table it writes to (a tenth of the cost of a create). The writers check
-- lengths and ranges.
CREATE TABLE tocsin.job_live (
  job_id          bigint NOT NULL,
  action_time     timestamptz NOT NULL,
  fire_at         timestamptz NOT NULL,
  gmt_create      timestamptz NOT NULL,
  gmt_modified    timestamptz NOT NULL,
  started_at      timestamptz,
  late_from       timestamptz,  -- lateness counts from here; NULL: from action_time, not before gmt_create
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

-- Shard s is stored in table s modulo 8. DO NOT CHANGE: statements name the tables. A statement over many shards opens
-- every table and index it may touch, so its fixed cost grows with the number of tables. Eight tables keep that cost
-- small and still spread the writers. Every shard has its own range of the _due index.
DO $$
DECLARE
  leaf    text;
  column_ text;
BEGIN
  FOR number IN 0 .. least(8, tocsin.shard_count()) - 1 LOOP
    leaf := 'job_live_' || lpad(number::text, 4, '0');
    -- Queue tables swing between empty and full: vacuum early and without pauses. Inserts alone are no reason to vacuum,
    -- because nothing reads these tables by an index-only scan. Analyze rarely: no plan depends on the number of rows,
    -- and each pass slows the writers down.
    EXECUTE format('CREATE TABLE tocsin.%I PARTITION OF tocsin.job_live FOR VALUES IN (%s) WITH (
      autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0,
      autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_threshold = 50000, autovacuum_analyze_scale_factor = 0.1)',
      leaf, (SELECT string_agg(s::text, ', ' ORDER BY s) FROM generate_series(number, tocsin.shard_count() - 1, 8) s));
    EXECUTE format('CREATE UNIQUE INDEX %I ON tocsin.%I (job_id)', leaf || '_id', leaf);
    -- Expressions (+ 0): on tables that are empty at planning time the planner would otherwise choose this index for a
    -- lookup by shard and job_id, and read the whole shard for every job.
    EXECUTE format('CREATE INDEX %I ON tocsin.%I ((shard + 0), type_id, fire_at, (job_id + 0))', leaf || '_due', leaf);
    -- With the id, so that the newest jobs of a key come from the index in order, whatever the statistics say. An
    -- expression (+ 0): where a few keys have all jobs the planner would otherwise read _id from its end.
    EXECUTE format('CREATE INDEX %I ON tocsin.%I (biz_id, (job_id + 0))', leaf || '_biz', leaf);
    EXECUTE format('CREATE UNIQUE INDEX %I ON tocsin.%I (biz_id, type_id, idempotency_key) WHERE idempotency_key IS NOT NULL',
                   leaf || '_key', leaf);
    -- Logical replication identifies rows by job_id alone. The shard is part of it (job_id & 1023), so a publication of
    -- one shard can filter on it. Cost: the id of a deleted row in the log, only where wal_level = logical.
    EXECUTE format('ALTER TABLE tocsin.%I REPLICA IDENTITY USING INDEX %I', leaf, leaf || '_id');
    -- Plans depend on the keys of a job only: small samples of those, none of the other columns. An analyze then costs
    -- a third.
    FOR column_ IN SELECT a.attname FROM pg_attribute a
                    WHERE a.attrelid = format('tocsin.%I', leaf)::regclass AND a.attnum > 0 AND NOT a.attisdropped LOOP
      EXECUTE format('ALTER TABLE tocsin.%I ALTER COLUMN %I SET STATISTICS %s', leaf, column_,
        CASE WHEN column_ IN ('job_id', 'biz_id', 'idempotency_key', 'type_id', 'shard', 'status', 'fire_at') THEN 10 ELSE 0 END);
    END LOOP;
    -- Expressions in indexes have samples of their own.
    EXECUTE format('ALTER INDEX tocsin.%I ALTER COLUMN 2 SET STATISTICS 10', leaf || '_biz');
    EXECUTE format('ALTER INDEX tocsin.%I ALTER COLUMN 1 SET STATISTICS 10', leaf || '_due');
    EXECUTE format('ALTER INDEX tocsin.%I ALTER COLUMN 4 SET STATISTICS 10', leaf || '_due');
  END LOOP;
END $$;

-- Distinguishes the bodies of two creates with the same idempotency key. requested_time is 'at <unix microseconds>' or
-- 'in <milliseconds>', as the caller wrote it: a relative time becomes another instant on every repeat. DO NOT CHANGE:
-- stored.
CREATE FUNCTION tocsin.body_hash(requested_time text, attribute jsonb, max_attempts integer) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE
RETURN pg_catalog.hashtextextended(
  pg_catalog.concat_ws(E'\n', requested_time, coalesce(attribute::text, ''), coalesce(max_attempts::text, '')), 0);

-- Keeps the last 16 failures of a job. started_at: of the attempt that failed; NULL: none did.
CREATE FUNCTION tocsin.append_error(errors jsonb, at timestamptz, node text, attempt integer, message text,
                                    started_at timestamptz) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE
RETURN (
  SELECT pg_catalog.jsonb_agg(e.value ORDER BY e.ordinality)
  FROM (SELECT value, ordinality
        FROM pg_catalog.jsonb_array_elements(coalesce(errors, '[]') || pg_catalog.jsonb_build_array(pg_catalog.jsonb_build_object(
          'at', pg_catalog.to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), 'node', node, 'attempt', attempt,
          'message', message, 'started_at', pg_catalog.to_char(started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))))
             WITH ORDINALITY
        ORDER BY ordinality DESC LIMIT 16) e);

-- A job that SQL makes due within this is told to the nodes at once: no scan may read it in time. A second more than
-- scans read ahead; EngineConfig::hint_window() is the same time.
CREATE FUNCTION tocsin.hint_window() RETURNS interval
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN interval '6 seconds';

-- 4. History ---------------------------------------------------------------------------------------------------------

-- Finished jobs: 2 done, 3 cancelled, 4 dead. DO NOT CHANGE. One table per status and day of finish (UTC), so that
-- retention drops tables and deletes no rows.
CREATE TABLE tocsin.job_history (
  job_id          bigint NOT NULL,
  action_time     timestamptz NOT NULL,
  fire_at         timestamptz NOT NULL,
  gmt_create      timestamptz NOT NULL,
  started_at      timestamptz,
  last_started_at timestamptz,  -- of the attempt that was done, if it was not the first
  late_from       timestamptz,
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

-- Creates the missing history tables of these kinds, from first_day to last_day. A transaction that creates a table holds
-- the lock of its kind until it ends: other transactions create no table of this kind meanwhile. cancel_job creates the
-- kind `cancelled` only, because its transaction is the caller's and may stay open. The kinds are locked in the order
-- given; all callers give the same order, so no deadlock is possible.
CREATE FUNCTION tocsin.ensure_history(first_day date, last_day date, kinds text[] DEFAULT '{done,dead,cancelled}') RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
DECLARE
  day date;
  kind text;
  leaf text;
BEGIN
  FOREACH kind IN ARRAY kinds LOOP
    FOR day IN SELECT d::date FROM generate_series(first_day::timestamp, last_day::timestamp, interval '1 day') d LOOP
      leaf := format('job_history_%s_%s', kind, to_char(day, 'YYYYMMDD'));
      CONTINUE WHEN to_regclass('tocsin.' || leaf) IS NOT NULL;
      -- Serialises the creators of one kind, as the end of this loop would. The second finds the table when it gets the
      -- lock: not so with an advisory lock, for only locks of tables make a session see what others made meanwhile.
      EXECUTE format('LOCK TABLE ONLY tocsin.%I IN SHARE UPDATE EXCLUSIVE MODE', 'job_history_' || kind);
      CONTINUE WHEN to_regclass('tocsin.' || leaf) IS NOT NULL;
      -- Created apart and then attached: PARTITION OF takes a lock on the parent that waits for every reader and blocks
      -- every finish.
      EXECUTE format('CREATE TABLE tocsin.%I (LIKE tocsin.%I INCLUDING ALL)', leaf, 'job_history_' || kind);
      EXECUTE format('CREATE UNIQUE INDEX %I ON tocsin.%I (job_id)', leaf || '_id', leaf);
      -- As of the live tables.
      EXECUTE format('CREATE INDEX %I ON tocsin.%I (biz_id, (job_id + 0))', leaf || '_biz', leaf);
      EXECUTE format('ALTER INDEX tocsin.%I ALTER COLUMN 2 SET STATISTICS 0', leaf || '_biz');
      -- A create looks for its idempotency key in every day. Only jobs with a key pay for it.
      EXECUTE format('CREATE INDEX %I ON tocsin.%I (biz_id, type_id, idempotency_key) WHERE idempotency_key IS NOT NULL',
                     leaf || '_key', leaf);
      EXECUTE format('ALTER TABLE tocsin.%I REPLICA IDENTITY USING INDEX %I', leaf, leaf || '_id');
      EXECUTE format('ALTER TABLE tocsin.%I ATTACH PARTITION tocsin.%I FOR VALUES FROM (%L) TO (%L)',
        'job_history_' || kind, leaf, day::text || ' 00:00:00+00', (day + 1)::text || ' 00:00:00+00');
    END LOOP;
  END LOOP;
END $$;
SELECT tocsin.ensure_history((now() AT TIME ZONE 'UTC')::date, (now() AT TIME ZONE 'UTC')::date + 2);

-- Raises the sequence of job ids beyond everything that is stored, with a distance that covers what was drawn and lost.
-- It can lie behind: after a restore, or when rows were copied here. After a promotion, and a recovery that ended before
-- the end of the log, what was drawn and lost is not stored: the log has a new timeline then, and the sequence is raised
-- once. Called with every new connection that draws ids. The maxima are the ends of indexes. The advisory lock makes
-- concurrent callers see each other's changes.
CREATE FUNCTION tocsin.raise_ids() RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  distance bigint := 1000000;
  timeline text := left(pg_walfile_name(pg_current_wal_lsn()), 8);
  stored   bigint;
  drawn    bigint;
  step     bigint;
  is_new   boolean;  -- the timeline
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('tocsin.raise_ids', 0));
  stored := greatest((SELECT max(job_id) FROM tocsin.job_live), (SELECT max(job_id) FROM tocsin.job_history),
                     (SELECT max(job_id) FROM tocsin.outbox), (SELECT max(job_id) FROM tocsin.relayed)) >> 10;
  SELECT s.last_value INTO drawn FROM tocsin.job_seq s;
  is_new := EXISTS (SELECT FROM tocsin.setting s WHERE s.name = 'timeline' AND s.value <> timeline);
  IF is_new THEN
    stored := greatest(stored, drawn);
  ELSIF stored IS NULL OR stored <= drawn THEN
    RETURN false;
  END IF;
  -- In steps: with several databases each draws its own residue.
  SELECT s.seqincrement INTO step FROM pg_sequence s WHERE s.seqrelid = 'tocsin.job_seq'::regclass;
  distance := distance * step;
  IF stored > 9007199254740991 - 2 * distance THEN
    RETURN false;
  END IF;
  -- Not before: what was not raised is tried again.
  IF is_new THEN
    UPDATE tocsin.setting s SET value = timeline WHERE s.name = 'timeline' AND s.value <> timeline;
    IF NOT FOUND THEN
      RETURN false;
    END IF;
  END IF;
  PERFORM setval('tocsin.job_seq', drawn + ((stored - drawn + distance) / step + 1) * step);
  RETURN true;
END $$;

-- An id that no job here has, although the sequence may have been set back. Locks nothing.
CREATE FUNCTION tocsin.fresh_id(shard smallint) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
  id bigint;
BEGIN
  LOOP
    id := nextval('tocsin.job_seq') * 1024 + shard;
    EXIT WHEN NOT EXISTS (SELECT FROM tocsin.job_history h WHERE h.job_id = id)
          AND NOT EXISTS (SELECT FROM tocsin.job_live l WHERE l.shard = shard AND l.job_id = id);
  END LOOP;
  RETURN id;
END $$;

-- Two jobs may have one id nevertheless. Of these ids, those that a live job has and a finished one too: the record
-- of the finished one gets a fresh id and says so among its errors. Returns the ids that are free again. is_ending: the
-- caller has just taken the live rows away, in a transaction that may go on for long; so the sequence is not raised, for
-- which every new session would wait.
CREATE FUNCTION tocsin.renumber_finished_jobs(ids bigint[], is_ending boolean DEFAULT false) RETURNS SETOF bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT is_ending THEN
    PERFORM tocsin.raise_ids();
  END IF;
  RETURN QUERY
    WITH taken AS MATERIALIZED (
      SELECT h.job_id, h.status, h.finished_at FROM unnest(ids) k (job_id) JOIN tocsin.job_history h ON h.job_id = k.job_id
       WHERE is_ending OR EXISTS (SELECT FROM tocsin.job_live l WHERE l.shard = (k.job_id & 1023)::smallint AND l.job_id = k.job_id)
    )
    UPDATE tocsin.job_history h
       SET job_id = tocsin.fresh_id(h.shard),
           errors = tocsin.append_error(h.errors, clock_timestamp(), h.node, h.attempts::integer,
                                        format('its id was %s, which was then given to another job', h.job_id), NULL)
      FROM taken t WHERE h.job_id = t.job_id AND h.status = t.status AND h.finished_at = t.finished_at
    RETURNING t.job_id;
END $$;

-- 5. Counts ----------------------------------------------------------------------------------------------------------

-- Every statement that changes a status appends rows to job_count_delta, one per type and event; a node folds those rows
-- into job_count, and their events into the report tables (section 13), once a second, each row exactly once. The sum of
-- job_count and job_count_delta is exact in every snapshot, and no report scans live tables.
-- Events, which statements write and fold_counts.sql reads: 1 created, 2 done, 3 cancelled, 4 dead, 5 dropped late (which
-- is dead as well), 6 revived, 7 attempt, 8 retried, 9 fired (an attempt and done), 10 released (one attempt less). They
-- are stored: DO NOT CHANGE them.
CREATE TABLE tocsin.job_count (
  type_id integer NOT NULL,
  status  smallint NOT NULL,
  n       bigint NOT NULL,
  PRIMARY KEY (type_id, status)
);
CREATE TABLE tocsin.job_count_delta (
  type_id       integer NOT NULL,
  status        smallint,          -- n jobs reached it (negative: left it); NULL: none moved
  n             integer NOT NULL,
  detail        integer,           -- of created: the delay bucket; of an end or a revival: the day of creation
  at            timestamptz NOT NULL DEFAULT clock_timestamp(),
  event         smallint,          -- what happened n times, see below; NULL: nothing to report
  sample_job_id bigint,
  reason        text               -- of the deaths
) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);

-- Days since 1970 in UTC.
CREATE FUNCTION tocsin.day_of(at timestamptz) RETURNS integer
LANGUAGE sql STABLE PARALLEL SAFE
RETURN floor(date_part('epoch', at) / 86400)::integer;

-- 0: under a second; n: 2^(n-1) to 2^n seconds.
CREATE FUNCTION tocsin.delay_bucket(ahead interval) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN ahead < interval '1 second' THEN 0 ELSE floor(log(date_part('epoch', ahead)) / log(2::double precision))::integer + 1 END;

-- The detail of an event: the day of creation, and the delay bucket of a creation.
CREATE FUNCTION tocsin.created_detail(action_time timestamptz, gmt_create timestamptz) RETURNS integer
LANGUAGE sql STABLE PARALLEL SAFE
RETURN tocsin.day_of(gmt_create) * 64 + tocsin.delay_bucket(action_time - gmt_create);

-- A message without what differs from job to job: ids and numbers, but the status of an HTTP answer stays.
CREATE FUNCTION tocsin.death_reason(message text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN left(replace(regexp_replace(regexp_replace(regexp_replace(left(coalesce(message, ''), 1000),
    '[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|\m(?=[A-Fa-f]*[0-9])(?=[0-9]*[A-Fa-f])[0-9A-Fa-f]{8,}\M', '<id>', 'g'),
    '\m(HTTP|status|answered|with) ([1-5])([0-9])([0-9])\M', E'\\1 \\2\x01\\3\x01\\4\x01', 'gi'),
    E'[0-9]+(?![0-9\x01])', '#', 'g'), E'\x01', ''), 200);

-- 6. Nodes and the shard map -----------------------------------------------------------------------------------------

-- Live processes. node_id is drawn at process start; the name is only a label, so a restart under the same name is a new
-- node.
CREATE TABLE tocsin.node (
  node_id       bigint PRIMARY KEY,
  name          text NOT NULL,
  state         text NOT NULL CHECK (state IN ('active', 'draining')),
  version       text NOT NULL,
  started_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  heartbeat_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
  scanned_at    timestamptz,    -- not written; scanned has one time per database
  backend_pid   integer,        -- of the session that writes the heartbeat: when it has ended, the node may have ended
  backend_start timestamptz,
  places        smallint[],     -- the databases the node was given
  scanned       timestamptz[],  -- per database of places: the last scan of all its shards there; NULL: none yet
  map_version   bigint          -- of the shard map the node works with; NULL: none yet
);

-- Who scans which shard, and where each shard lives. One row in the control database, replaced as a whole. A writer names
-- the version it has read, so that of several nodes that notice the same change one wins and the others read the result.
CREATE TABLE tocsin.shard_map (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  version bigint NOT NULL,
  owners  bigint[] NOT NULL,               -- node_id by shard, from shard 0 on; 0: no owner
  places  smallint[] NOT NULL DEFAULT '{}' -- database by shard, from shard 0 on; '{}' until the first migration fills it
);
INSERT INTO tocsin.shard_map (version, owners) VALUES (0, '{}');

-- 7. Several databases -----------------------------------------------------------------------------------------------

-- In the control database: one row per database of the installation.
CREATE TABLE tocsin.database (
  place        smallint PRIMARY KEY CHECK (place BETWEEN 0 AND 63),  -- 0: control database. DO NOT CHANGE: stored in the map
  name         text COLLATE "C" NOT NULL UNIQUE,
  address      text NOT NULL,    -- host, port and database as last given to migrate: names a database that does not answer
  server       bigint NOT NULL,  -- the cluster's system identifier; identifies a database together with database_oid
  database_oid bigint NOT NULL,
  gmt_create   timestamptz NOT NULL DEFAULT clock_timestamp(),
  UNIQUE (server, database_oid)
);

-- In every database, one row: its identity in the installation.
CREATE TABLE tocsin.place (
  is_only      boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  installation uuid NOT NULL DEFAULT gen_random_uuid(),  -- the same in all databases of the installation
  place        smallint NOT NULL DEFAULT 0,
  name         text NOT NULL DEFAULT current_database(),
  shards       smallint[]  -- that live here; NULL: all of them
);
INSERT INTO tocsin.place DEFAULT VALUES;

CREATE FUNCTION tocsin.lives_here(shard smallint) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN (SELECT coalesce(shard = ANY (p.shards), true) FROM tocsin.place p);
END $$;

-- Fails every write to a shard that does not live here. Evaluated only for such shards. Rows brought by replication pass:
-- they arrive before the shard lives here.
CREATE FUNCTION tocsin.refuse_shard(shard smallint) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF current_setting('session_replication_role') = 'replica' THEN
    RETURN true;
  END IF;
  RAISE EXCEPTION 'shard % does not live in the database %', shard, (SELECT p.name FROM tocsin.place p)
    USING ERRCODE = 'TC001', HINT = 'Use the database that /v1/shards names for this shard, or REST on any node.';
END $$;

-- Sets the shards that live here; NULL: all. The ownership constraint refuses live jobs of all other shards. It is a
-- constraint because a single database, which has none, then pays nothing, and because replacing it waits for every
-- transaction that has written, so no writer can pass it with an older map. One bit per shard: a list would be searched
-- from its beginning for every row. NOT VALID: it promises the planner nothing.
CREATE FUNCTION tocsin.set_shards_here(here smallint[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  bits bytea := decode(repeat('00', 128), 'hex');
  s    smallint;
BEGIN
  UPDATE tocsin.place SET shards = here;
  ALTER TABLE tocsin.job_live DROP CONSTRAINT IF EXISTS lives_here;
  IF here IS NOT NULL THEN
    FOREACH s IN ARRAY here LOOP
      bits := set_bit(bits, s, 1);
    END LOOP;
    EXECUTE format('ALTER TABLE tocsin.job_live ADD CONSTRAINT lives_here CHECK (get_bit(%L::bytea, shard) = 1 OR tocsin.refuse_shard(shard)) NOT VALID',
                   bits);
  END IF;
END $$;

-- 8. Limits ----------------------------------------------------------------------------------------------------------

-- In the control database: what each node has been granted of the limits of each type.
-- limit_kind: 0 running (permits of max_running), 1 rate, 2 catch_up (both in thousandths). DO NOT CHANGE: stored.
CREATE TABLE tocsin.permit (
  type_id    integer NOT NULL,
  limit_kind smallint NOT NULL,
  node_id    bigint NOT NULL,
  granted    integer NOT NULL CHECK (granted >= 0),
  need       integer NOT NULL,      -- what the node could use at once; -1: it leaves
  used       integer NOT NULL,      -- only for display
  request_no bigint NOT NULL,       -- of the node's last request: an older one that arrives late changes nothing
  renewed_at timestamptz NOT NULL,
  ttl        interval NOT NULL,     -- the grant ends at renewed_at + ttl
  lease      interval NOT NULL,     -- jobs started under the grant may run for this long after its end
  PRIMARY KEY (type_id, limit_kind, node_id)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);

CREATE FUNCTION tocsin.permits_of(kind tocsin.biz_type, limit_kind smallint) RETURNS integer
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE limit_kind
  WHEN 0 THEN coalesce(kind.max_running, 0)
  WHEN 1 THEN CASE WHEN kind.rate_per_s IS NULL THEN 0 ELSE 1000 END
  ELSE CASE WHEN kind.catch_up ->> 'rate_per_s' IS NULL THEN 0 ELSE 1000 END END;

-- One node returns what it no longer holds and takes, of the free permits, up to what it wants. Returns the grants of all
-- nodes for the limits asked for: one row per request (ord = 1, 2, ...) and node. The rows of the types are locked first,
-- in order, and every later statement has a snapshot of its own, so no two nodes add up the same grants.
CREATE FUNCTION tocsin.renew_permits(node bigint, number bigint, ttl_us bigint, type_ids integer[], kinds smallint[], helds integer[],
                                     wanteds integer[], needs integer[], useds integer[], leases_us bigint[])
RETURNS TABLE (ord bigint, total integer, node_id bigint, granted integer, need integer, used integer, is_expired boolean, db_now timestamptz)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  now_ timestamptz;
BEGIN
  PERFORM 1 FROM tocsin.biz_type t WHERE t.type_id = ANY (type_ids) ORDER BY t.type_id FOR NO KEY UPDATE;
  now_ := clock_timestamp();
  -- The clock was set back: earlier grants count from now on.
  UPDATE tocsin.permit p SET renewed_at = now_ WHERE p.type_id = ANY (type_ids) AND p.renewed_at > now_;
  DELETE FROM tocsin.permit p
   WHERE p.type_id = ANY (type_ids) AND p.node_id <> renew_permits.node AND p.renewed_at + p.ttl + p.lease < now_;
  INSERT INTO tocsin.permit AS p (type_id, limit_kind, node_id, granted, need, used, request_no, renewed_at, ttl, lease)
  SELECT r.type_id, r.kind, renew_permits.node,
         b.base + greatest(0, least(r.wanted - b.base, tocsin.permits_of(t, r.kind) - b.others - b.base)),
         r.need, r.used, number, now_, ttl_us * interval '1 microsecond',
         -- A job started under a longer lease keeps it.
         greatest(r.lease_us * interval '1 microsecond', b.lease_left)
    FROM unnest(type_ids, kinds, helds, wanteds, needs, useds, leases_us) r (type_id, kind, held, wanted, need, used, lease_us)
    JOIN tocsin.biz_type t ON t.type_id = r.type_id
   CROSS JOIN LATERAL (
     SELECT least(r.held, coalesce(sum(o.granted) FILTER (WHERE o.node_id = renew_permits.node), 0))::integer AS base,
            coalesce(sum(o.granted) FILTER (WHERE o.node_id <> renew_permits.node), 0)::integer AS others,
            max(o.lease - (now_ - o.renewed_at)) FILTER (WHERE o.node_id = renew_permits.node) AS lease_left
       FROM tocsin.permit o WHERE o.type_id = r.type_id AND o.limit_kind = r.kind) b
  ON CONFLICT (type_id, limit_kind, node_id) DO UPDATE
    SET granted = excluded.granted, need = excluded.need, used = excluded.used, request_no = excluded.request_no,
        renewed_at = excluded.renewed_at, ttl = excluded.ttl, lease = excluded.lease
  WHERE p.request_no < excluded.request_no;
  RETURN QUERY
  SELECT r.ord, coalesce(tocsin.permits_of(t, r.kind), 0), p.node_id, p.granted, p.need, p.used, p.renewed_at + p.ttl < now_, now_
    FROM unnest(type_ids, kinds) WITH ORDINALITY r (type_id, kind, ord)
    LEFT JOIN tocsin.biz_type t ON t.type_id = r.type_id
    LEFT JOIN tocsin.permit p ON p.type_id = r.type_id AND p.limit_kind = r.kind
   ORDER BY r.ord, p.node_id;
END $$;

-- 9. Outbox ----------------------------------------------------------------------------------------------------------

-- SQL callers create jobs in the database of their own data. A job whose shard lives in another database waits here, in
-- the caller's transaction, until a node has inserted it there, exactly once.
CREATE TABLE tocsin.outbox (
  job_id          bigint PRIMARY KEY,  -- the job's; drawn here and in no other database
  shard           smallint NOT NULL,
  type_id         integer NOT NULL,
  max_attempts    smallint NOT NULL,
  is_cancelled    boolean NOT NULL DEFAULT false,
  action_time     timestamptz NOT NULL,
  gmt_create      timestamptz NOT NULL,
  late_from       timestamptz,  -- of the job: set when the entry got a deadline in the past
  changed_at      timestamptz,  -- when it was last cancelled or rescheduled here
  biz_id          text COLLATE "C" NOT NULL,
  idempotency_key text COLLATE "C",
  body_hash       bigint,
  attribute       jsonb,
  claimed_by      bigint,       -- the node that relays it; NULL: no attempt yet, so it can be changed here, unless it has a key
  claimed_at      timestamptz,
  settled_at      timestamptz,  -- it became no job, for the reason in the next two columns
  existing_job_id bigint,       -- the job that had the key; the entry's own id: it is a job, and was changed here too late
  error           text          -- the shard's database refused the entry, or its change
) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX outbox_due ON tocsin.outbox (shard, action_time, job_id) WHERE settled_at IS NULL;
CREATE INDEX outbox_settled ON tocsin.outbox (settled_at) WHERE settled_at IS NOT NULL;
CREATE INDEX outbox_biz ON tocsin.outbox (biz_id) WHERE settled_at IS NULL;
CREATE UNIQUE INDEX outbox_key ON tocsin.outbox (biz_id, type_id, idempotency_key) WHERE idempotency_key IS NOT NULL AND settled_at IS NULL;

-- In the shard's database: jobs that came from the outboxes of other databases, so that none is inserted twice. A row
-- stays until its entry has been gone for longer than any node can still be relaying it.
CREATE TABLE tocsin.relayed (
  job_id     bigint PRIMARY KEY,
  source     smallint NOT NULL,     -- the database of the outbox
  gmt_create timestamptz NOT NULL,  -- of the entry: another entry with this id is another job
  relayed_at timestamptz NOT NULL,  -- when the job was inserted, or an entry that had changed was last applied to it
  gone_at    timestamptz,           -- when its entry was found deleted
  -- Another job has the entry's idempotency key: this id, which create_job returned, stands for that job. Kept as long as
  -- that job and the entry, which stays for seven days.
  existing_job_id bigint,
  error      text,                  -- the entry was refused, because that job has another body
  changed_at timestamptz            -- of the entry whose state the job has
) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- Part of create_job: the shard lives in another database.
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
  IF action_time < created + tocsin.hint_window() THEN
    NOTIFY tocsin_outbox;
  END IF;
  RETURN id;
END $$;

-- Part of take_over: the entry of a job that was here before is cancelled or has another deadline. Does the same to the
-- job. Returns why it is too late for that, or NULL. Refuses an entry that was read before the job got its last change
-- from here: the entry may have changed since. The relay reads it again.
CREATE FUNCTION tocsin.change_relayed(job_id bigint, valid_until timestamptz, is_cancelled boolean, action_time timestamptz, changed_at timestamptz) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
  result text;
BEGIN
  PERFORM FROM tocsin.relayed r WHERE r.job_id = job_id AND r.relayed_at <= valid_until - interval '60 seconds' FOR UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the outbox was read before the last change of its entry' USING ERRCODE = 'serialization_failure';
  END IF;
  result := CASE WHEN is_cancelled THEN tocsin.cancel_job(job_id) ELSE tocsin.reschedule_job(job_id, action_time) END;
  IF result IN ('cancelled', 'rescheduled')
     OR (is_cancelled AND EXISTS (SELECT FROM tocsin.job_history_cancelled h WHERE h.job_id = job_id)) THEN
    UPDATE tocsin.relayed r SET changed_at = changed_at, relayed_at = clock_timestamp() WHERE r.job_id = job_id;
    RETURN NULL;
  END IF;
  RETURN format('%s too late: job %s is %s', CASE WHEN is_cancelled THEN 'cancelled' ELSE 'rescheduled' END, job_id, result);
END $$;

-- In the shard's database: inserts jobs for entries of another database's outbox, unless they were inserted before. One
-- row per entry, in order; fire_at only for a new pending job. What was done to an entry in its outbox is done to its job
-- in the same transaction, also if the job was here before; error says where it was too late for that, and
-- existing_job_id is the entry's own id then. valid_until is compared with this database's clock: 60 seconds
-- (IntakeStore::kHandOver) after the entries were read. After that time another node may have relayed an entry, and
-- tocsin.relayed may have deleted its row of it. Waits 5 ms at most for a locked row or key: the caller repeats the entries in
-- smaller parts, and a locked one must not delay the others.
CREATE FUNCTION tocsin.take_over(source smallint, valid_until timestamptz, job_ids bigint[], type_ids integer[], max_attempts smallint[], cancelled boolean[],
                                 action_times timestamptz[], created timestamptz[], late_from timestamptz[], changed timestamptz[], biz_ids text[], keys text[], hashes bigint[], attributes text[])
RETURNS TABLE (job_id bigint, fire_at timestamptz, existing_job_id bigint, error text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '5ms' AS $$
#variable_conflict use_variable
DECLARE
  entry  record;
  found_ record;
  shard_ smallint;
  is_new boolean;
  known_ timestamptz;
  -- Before the clock is read: the scan's xmin watermark tells by ids how old a row can be that is still to come.
  xid_   xid8 := pg_current_xact_id();
  now_   timestamptz := clock_timestamp();
BEGIN
  IF now_ > valid_until THEN
    RAISE EXCEPTION 'the outbox was read too long ago' USING ERRCODE = 'serialization_failure';
  END IF;
  IF EXISTS (SELECT FROM (SELECT DISTINCT t FROM unnest(type_ids) t) d WHERE NOT tocsin.takes_jobs(d.t)) THEN
    RAISE EXCEPTION 'a type is not mirrored here yet, or being removed' USING ERRCODE = 'serialization_failure';
  END IF;
  FOR entry IN SELECT * FROM unnest(job_ids, type_ids, max_attempts, cancelled, action_times, created, late_from, changed, biz_ids, keys, hashes, attributes)
               e (job_id, type_id, max_attempts, is_cancelled, action_time, gmt_create, late_from, changed_at, biz_id, key, body_hash, attribute) LOOP
    job_id := entry.job_id;
    fire_at := NULL;
    existing_job_id := NULL;
    error := NULL;
    shard_ := (job_id & 1023)::smallint;
    INSERT INTO tocsin.relayed (job_id, source, gmt_create, relayed_at, changed_at)
    VALUES (job_id, source, entry.gmt_create, now_, entry.changed_at) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
      -- A standby that was promoted without the last commits draws numbers again.
      SELECT r.existing_job_id, r.error, r.changed_at INTO existing_job_id, error, known_ FROM tocsin.relayed r
       WHERE r.job_id = job_id AND r.source = source AND r.gmt_create = entry.gmt_create;
      IF NOT FOUND THEN
        error := 'its job_id is that of another job';
      ELSIF entry.changed_at <> coalesce(known_, '-infinity') THEN
        -- A failover of the outbox's database lost the claim, and the entry was changed afterwards. Which of two changes
        -- is the later one is not told by changed_at: the clock there may have gone back.
        error := tocsin.change_relayed(job_id, valid_until, entry.is_cancelled, entry.action_time, entry.changed_at);
        IF error IS NOT NULL THEN
          existing_job_id := job_id;
        END IF;
      END IF;
      RETURN NEXT;
      CONTINUE;
    END IF;
    INSERT INTO tocsin.job_live AS j (job_id, action_time, fire_at, gmt_create, gmt_modified, late_from, type_id, shard, max_attempts, biz_id,
                                 idempotency_key, body_hash, attribute)
    VALUES (job_id, entry.action_time, greatest(entry.action_time, now_), entry.gmt_create, now_, entry.late_from, entry.type_id, shard_,
            entry.max_attempts, entry.biz_id, entry.key, entry.body_hash, entry.attribute::jsonb)
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
        existing_job_id := found_.job_id;
        IF found_.body_hash IS DISTINCT FROM entry.body_hash THEN
          error := format('idempotency_key: job %s has this key and another body', found_.job_id);
        END IF;
        UPDATE tocsin.relayed r SET existing_job_id = found_.job_id, error = error WHERE r.job_id = job_id;
        RETURN NEXT;
        CONTINUE;
      END IF;
    END IF;
    -- Not by its key: a live job has the id. It will not go away, so the entry is refused and not tried for ever.
    IF NOT is_new AND (entry.key IS NULL OR EXISTS (SELECT FROM tocsin.job_live j WHERE j.shard = shard_ AND j.job_id = job_id)) THEN
      DELETE FROM tocsin.relayed r WHERE r.job_id = job_id;
      error := 'its job_id is that of another job';
      RETURN NEXT;
      CONTINUE;
    ELSIF NOT is_new THEN
      RAISE EXCEPTION 'idempotency_key: a concurrent transaction holds this key' USING ERRCODE = 'serialization_failure';
    END IF;
    INSERT INTO tocsin.job_count_delta (type_id, status, n, detail, event)
    VALUES (entry.type_id, 0, 1, tocsin.created_detail(entry.action_time, entry.gmt_create), 1);
    IF entry.is_cancelled THEN
      PERFORM tocsin.cancel_job(job_id);
    ELSE
      fire_at := greatest(entry.action_time, now_);
    END IF;
    RETURN NEXT;
  END LOOP;
END $$;

-- 10. Moves of shards ------------------------------------------------------------------------------------------------

-- In the control database one row per move in progress; its source and target have one, too. driver numbers the commands
-- and nodes that drive the move, and every step checks the number in the database it changes, so a driver that was
-- replaced changes nothing any more.
CREATE TABLE tocsin.move (
  shard      smallint PRIMARY KEY,
  source     smallint NOT NULL,
  target     smallint NOT NULL CHECK (target <> source),
  driver     bigint NOT NULL,
  -- The row of the control database decides.
  state      text NOT NULL DEFAULT 'copying' CHECK (state IN ('copying', 'switching', 'switched', 'aborting')),
  started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  counts     jsonb,                           -- at the source: what was subtracted from its counts
  is_counted boolean NOT NULL DEFAULT false,  -- at the target: they were added to its counts
  -- In the control database: the end of the write freeze. The driver sets it before it freezes the shard and extends it
  -- while the shard is frozen. After it any node may become the driver, end the freeze, and leave the rest to the next
  -- command. NULL: not frozen.
  thaw_at    timestamptz,
  is_rescued boolean NOT NULL DEFAULT false   -- by a node, since a command took it: that command may take it again
);

-- Trigger on the rows of a write-frozen shard. Claims, finishes and cancels change no row, so a batch continues without them
-- and the caller repeats; other changes are refused.
CREATE FUNCTION tocsin.keep_still() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP = 'DELETE' OR NEW.claim_token IS DISTINCT FROM OLD.claim_token THEN
    RETURN NULL;
  END IF;
  RAISE EXCEPTION 'shard % is moving to another database', OLD.shard USING ERRCODE = 'TC001', HINT = 'Try again in a moment.';
END $$;

-- Freezes a shard: after the commit no row of it changes here, and no change is in progress, because the function waits
-- for every transaction that has written. This function and the next two lock the list of shards first: before they read
-- it, for moves of different shards run at a time, and before they lock a table, so that no two deadlock.
CREATE FUNCTION tocsin.freeze_shard(shard smallint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
  leaf regclass := format('tocsin.job_live_%s', lpad((shard % 8)::text, 4, '0'))::regclass;
BEGIN
  PERFORM FROM tocsin.place FOR UPDATE;
  IF EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = leaf AND t.tgname = 'keep_still_' || shard) THEN
    RETURN;
  END IF;
  PERFORM tocsin.set_shards_here(array_remove(coalesce(p.shards, ARRAY(SELECT s::smallint FROM generate_series(0, tocsin.shard_count() - 1) s)), shard))
     FROM tocsin.place p;
  EXECUTE format('CREATE TRIGGER %I BEFORE UPDATE OR DELETE ON %s FOR EACH ROW WHEN (OLD.shard = %s) EXECUTE FUNCTION tocsin.keep_still()',
                 'keep_still_' || shard, leaf, shard);
END $$;

-- Ends the freeze. Until open_shard, the shard does not live here.
CREATE FUNCTION tocsin.thaw_shard(shard smallint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
  leaf regclass := format('tocsin.job_live_%s', lpad((shard % 8)::text, 4, '0'))::regclass;
BEGIN
  PERFORM FROM tocsin.place FOR UPDATE;
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
  PERFORM FROM tocsin.place FOR UPDATE;
  IF tocsin.lives_here(shard) THEN
    RETURN;
  END IF;
  SELECT array_agg(s ORDER BY s) INTO here FROM tocsin.place p, unnest(p.shards || shard) s;
  PERFORM tocsin.set_shards_here(here);
END $$;

-- Subtracts the jobs of a frozen shard from the counts of this database, once, and returns them.
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
    INSERT INTO tocsin.job_count_delta (type_id, status, n)
      SELECT (c->>'type_id')::integer, (c->>'status')::smallint, -(c->>'n')::integer FROM jsonb_array_elements(taken) c;
  END IF;
  RETURN taken;
END $$;

-- Adds the result of take_counts to the counts of this database, once.
CREATE FUNCTION tocsin.add_counts(shard smallint, taken jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
BEGIN
  UPDATE tocsin.move m SET is_counted = true WHERE m.shard = shard AND NOT m.is_counted;
  IF FOUND THEN
    INSERT INTO tocsin.job_count_delta (type_id, status, n)
      SELECT (c->>'type_id')::integer, (c->>'status')::smallint, (c->>'n')::integer FROM jsonb_array_elements(taken) c;
  END IF;
END $$;

-- Deletes the rows of a shard from a table of jobs in a database where the shard does not live; returns how many. They are
-- rows that replication brought, or rows that were copied and counted: as a replica, the delete changes no counts and
-- passes the freeze. Superusers only.
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


-- 11. SQL interface --------------------------------------------------------------------------------------------------

-- Every job, live or finished. Each branch has its status as a constant, so a filter on status reads one branch only. Only
-- jobs of shards that live here: during a move the other database has a copy of the shard's rows.
CREATE VIEW tocsin.job AS
  SELECT j.job_id, j.biz_id, t.name AS biz_type, 'pending'::text AS status, j.action_time, j.fire_at, j.attempts, j.max_attempts,
         j.attribute, j.idempotency_key, j.shard, j.node, j.gmt_create, j.gmt_modified, j.started_at, NULL::timestamptz AS finished_at,
         round((extract(epoch FROM greatest(j.started_at - coalesce(j.late_from, greatest(j.action_time, j.gmt_create)),
           CASE WHEN j.started_at IS NOT NULL THEN interval '0' END)) * 1000)::numeric, 3) AS lateness_ms, coalesce(j.errors, '[]'::jsonb) AS errors
  FROM tocsin.job_live j JOIN tocsin.biz_type t USING (type_id)
  WHERE j.status = 0 AND coalesce(j.shard = ANY ((SELECT p.shards FROM tocsin.place p)::smallint[]), true)
UNION ALL
  SELECT j.job_id, j.biz_id, t.name, 'running'::text, j.action_time, j.fire_at, j.attempts, j.max_attempts,
         j.attribute, j.idempotency_key, j.shard, j.node, j.gmt_create, j.gmt_modified, j.started_at, NULL::timestamptz,
         round((extract(epoch FROM greatest(j.started_at - coalesce(j.late_from, greatest(j.action_time, j.gmt_create)),
           CASE WHEN j.started_at IS NOT NULL THEN interval '0' END)) * 1000)::numeric, 3), coalesce(j.errors, '[]'::jsonb)
  FROM tocsin.job_live j JOIN tocsin.biz_type t USING (type_id)
  WHERE j.status = 1 AND coalesce(j.shard = ANY ((SELECT p.shards FROM tocsin.place p)::smallint[]), true)
UNION ALL
  SELECT h.job_id, h.biz_id, t.name, 'done'::text, h.action_time, h.fire_at, h.attempts, h.max_attempts,
         h.attribute, h.idempotency_key, h.shard, h.node, h.gmt_create, h.finished_at, h.started_at, h.finished_at,
         round((extract(epoch FROM greatest(h.started_at - coalesce(h.late_from, greatest(h.action_time, h.gmt_create)),
           CASE WHEN h.started_at IS NOT NULL THEN interval '0' END)) * 1000)::numeric, 3), coalesce(h.errors, '[]'::jsonb)
  FROM tocsin.job_history_done h JOIN tocsin.biz_type t USING (type_id)
  WHERE coalesce(h.shard = ANY ((SELECT p.shards FROM tocsin.place p)::smallint[]), true)
UNION ALL
  SELECT h.job_id, h.biz_id, t.name, 'cancelled'::text, h.action_time, h.fire_at, h.attempts, h.max_attempts,
         h.attribute, h.idempotency_key, h.shard, h.node, h.gmt_create, h.finished_at, h.started_at, h.finished_at,
         round((extract(epoch FROM greatest(h.started_at - coalesce(h.late_from, greatest(h.action_time, h.gmt_create)),
           CASE WHEN h.started_at IS NOT NULL THEN interval '0' END)) * 1000)::numeric, 3), coalesce(h.errors, '[]'::jsonb)
  FROM tocsin.job_history_cancelled h JOIN tocsin.biz_type t USING (type_id)
  WHERE coalesce(h.shard = ANY ((SELECT p.shards FROM tocsin.place p)::smallint[]), true)
UNION ALL
  SELECT h.job_id, h.biz_id, t.name, 'dead'::text, h.action_time, h.fire_at, h.attempts, h.max_attempts,
         h.attribute, h.idempotency_key, h.shard, h.node, h.gmt_create, h.finished_at, h.started_at, h.finished_at,
         round((extract(epoch FROM greatest(h.started_at - coalesce(h.late_from, greatest(h.action_time, h.gmt_create)),
           CASE WHEN h.started_at IS NOT NULL THEN interval '0' END)) * 1000)::numeric, 3), coalesce(h.errors, '[]'::jsonb)
  FROM tocsin.job_history_dead h JOIN tocsin.biz_type t USING (type_id)
  WHERE coalesce(h.shard = ANY ((SELECT p.shards FROM tocsin.place p)::smallint[]), true);
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

CREATE VIEW tocsin.outbox_entry AS
  SELECT o.job_id, o.biz_id, t.name AS biz_type,
         CASE WHEN o.error IS NOT NULL THEN 'refused' WHEN o.existing_job_id IS NOT NULL THEN 'existing'
              WHEN o.claimed_by IS NOT NULL THEN 'relaying' ELSE 'waiting' END AS state,
         o.error, o.existing_job_id, o.is_cancelled, o.action_time, o.gmt_create, o.settled_at, o.attribute, o.idempotency_key, o.shard
  FROM tocsin.outbox o JOIN tocsin.biz_type t USING (type_id);
COMMENT ON VIEW tocsin.outbox_entry IS 'Jobs created here whose shard lives in another database, and that have not become jobs there';

-- Creates one job inside the caller's transaction: the order and its timeout commit together. Returns the job_id. The same
-- (biz_type, biz_id, idempotency_key) again returns the job_id of the first; raises unique_violation if the body differs.
-- A job whose shard lives in another database goes to the outbox under the same id. The insert itself looks up whether the
-- shard lives here: it then holds the table's lock, so the shard cannot leave between the check and the row.
CREATE FUNCTION tocsin.create_job(biz_type text, biz_id text, action_time timestamptz, attribute jsonb DEFAULT NULL, idempotency_key text DEFAULT NULL)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
  kind   tocsin.biz_type;
  target smallint;
  id     bigint;
  -- Before the clock is read: the scan's xmin watermark tells by ids how old a row can be that is still to come.
  xid_   xid8 := pg_current_xact_id();
  now_   timestamptz := clock_timestamp();
  found_ record;
  hash   bigint;
  size   integer := octet_length(attribute::text);
BEGIN
  SELECT * INTO kind FROM tocsin.biz_type t WHERE t.name = biz_type;
  IF kind.type_id IS NULL OR NOT tocsin.takes_jobs(kind.type_id) THEN
    -- Read again: takes_jobs() may have waited for the removal.
    PERFORM FROM tocsin.biz_type t WHERE t.type_id = kind.type_id AND (t.removed_at IS NULL OR t.removal_at IS NOT NULL);
    IF FOUND THEN
      RAISE EXCEPTION 'biz_type: type % is being removed, and may stay: repeat the transaction', quote_nullable(left(biz_type, 128))
        USING ERRCODE = 'serialization_failure';
    END IF;
    RAISE EXCEPTION 'biz_type: unknown type %', quote_nullable(left(biz_type, 128)) USING ERRCODE = 'foreign_key_violation';
  END IF;
  IF biz_id IS NULL OR octet_length(biz_id) NOT BETWEEN 1 AND 128 THEN
    RAISE EXCEPTION 'biz_id: must have 1 to 128 bytes' USING ERRCODE = 'check_violation';
  END IF;
  IF idempotency_key IS NOT NULL AND octet_length(idempotency_key) NOT BETWEEN 1 AND 256 THEN
    RAISE EXCEPTION 'idempotency_key: must have 1 to 256 bytes' USING ERRCODE = 'check_violation';
  END IF;
  IF action_time IS NULL OR action_time < '2000-01-01 00:00:00+00' OR action_time > now_ + interval '438312 hours' THEN
    RAISE EXCEPTION 'action_time: must lie between 2000-01-01 and 50 years ahead' USING ERRCODE = 'datetime_field_overflow';
  END IF;
  IF size > 65536 THEN
    RAISE EXCEPTION 'attribute: larger than 64 KiB' USING ERRCODE = 'program_limit_exceeded';
  END IF;
  -- As in REST: what other JSON parsers do not read must not reach a handler. Short texts can be neither.
  IF size >= 64 AND jsonb_path_exists(attribute, 'strict $.**{31} ? (@.type() == "object" || @.type() == "array")') THEN
    RAISE EXCEPTION 'attribute: nested deeper than 31 levels' USING ERRCODE = 'program_limit_exceeded';
  END IF;
  IF size > 308 AND jsonb_path_exists(attribute, 'strict $.** ? (@.type() == "number" && (@ > 1.7976931348623157e308 || @ < -1.7976931348623157e308))') THEN
    RAISE EXCEPTION 'attribute: a number is out of range' USING ERRCODE = 'program_limit_exceeded';
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
  INSERT INTO tocsin.job_count_delta (type_id, status, n, detail, event)
  VALUES (kind.type_id, 0, 1, tocsin.created_detail(action_time, now_), 1);
  IF action_time < now_ + tocsin.hint_window() THEN
    -- job, type and due time: the node that owns the shard needs no read to put it on its wheel.
    PERFORM pg_notify('tocsin_due', format('%s %s %s', id, kind.type_id, (extract(epoch FROM greatest(action_time, now_)) * 1000000)::bigint));
  END IF;
  RETURN id;
END $$;

-- Fails with serialization_failure if a transaction above READ COMMITTED has a snapshot from before the last change of one
-- of these jobs: what it shows is not true any more. Locking a row tells whether it has changed. A row that is locked has
-- not: its change is not committed. No lock is kept, or the job's outcome would wait for the end of the transaction.
CREATE FUNCTION tocsin.refuse_old_snapshot(jobs bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  IF current_setting('transaction_isolation') = 'read committed' THEN
    RETURN;
  END IF;
  BEGIN
    PERFORM FROM tocsin.place FOR SHARE;  -- the shards that live here
    PERFORM FROM unnest(jobs) k (job_id) JOIN tocsin.job_live j ON j.shard = (k.job_id & 1023)::smallint AND j.job_id = k.job_id
       FOR SHARE OF j SKIP LOCKED;
    PERFORM FROM unnest(jobs) k (job_id) JOIN tocsin.job_history h ON h.job_id = k.job_id FOR SHARE OF h SKIP LOCKED;
    RAISE EXCEPTION USING ERRCODE = 'TC000';
  EXCEPTION WHEN SQLSTATE 'TC000' THEN
    NULL;  -- the locks are released
  END;
END $$;

-- What a verb answers for a job that it could not change: 'running' or 'finished'; 'pending': it changed in between, try
-- again; NULL: it is no job here.
CREATE FUNCTION tocsin.state_of_job(job_id bigint) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_variable
DECLARE
  state text;
BEGIN
  SELECT CASE f.status WHEN 0 THEN 'pending' WHEN 1 THEN 'running' ELSE 'finished' END INTO state FROM (
    SELECT j.status FROM tocsin.job_live j WHERE j.shard = (job_id & 1023)::smallint AND j.job_id = job_id
    UNION ALL
    SELECT h.status FROM tocsin.job_history h WHERE h.job_id = job_id) f LIMIT 1;
  IF state <> 'pending' THEN
    PERFORM tocsin.refuse_old_snapshot(ARRAY[job_id]);
  END IF;
  RETURN state;
END $$;

-- What a verb answers for an id that is no job here, and whose outbox entry it could not change: 'finished', 'not found', or
-- SQLSTATE TC001 where only another database knows.
CREATE FUNCTION tocsin.state_of_entry(job_id bigint) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
  entry  tocsin.outbox;
  shard_ smallint := (job_id & 1023)::smallint;
BEGIN
  SELECT * INTO entry FROM tocsin.outbox o WHERE o.job_id = job_id;
  IF entry.error IS NOT NULL AND entry.existing_job_id IS NULL THEN
    RETURN 'not found';
  ELSIF entry.existing_job_id <> job_id THEN
    RAISE EXCEPTION 'job % was not created: job % had its idempotency key', job_id, entry.existing_job_id
      USING ERRCODE = 'TC001', HINT = 'Use that one.';
  ELSIF entry.error IS NULL AND entry.is_cancelled THEN
    RETURN 'finished';
  ELSIF entry.error IS NULL AND entry.job_id IS NOT NULL THEN
    RAISE EXCEPTION 'job % is on its way to another database', job_id
      USING ERRCODE = 'TC001', HINT = 'Change it there, or by REST on any node, when this transaction has ended.';
  ELSIF shard_ < tocsin.shard_count() AND NOT tocsin.lives_here(shard_) THEN
    PERFORM tocsin.refuse_shard(shard_);
  END IF;
  RETURN 'not found';
END $$;

-- Cancels inside the caller's transaction. Returns 'cancelled', 'running', 'finished' or 'not found'. An outbox entry that
-- no node has begun to relay is cancelled there: it becomes a cancelled job in its shard's database. Not one with an
-- idempotency key: another job may have the key there and be running, so an answer from here could be false.
-- Live tables and history are read with one snapshot, so a job that is revived at the same time is never 'not found'. A
-- job found pending after the delete missed it came back from history, from a claim, or from a freeze: try again. It still
-- fails after three tries if its shard has been frozen since a REPEATABLE READ transaction began.
CREATE FUNCTION tocsin.cancel_job(job_id bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_variable
DECLARE
  job     tocsin.job_live;
  state   text;
  shard_  smallint := (job_id & 1023)::smallint;
  now_    timestamptz := clock_timestamp();
BEGIN
  IF job_id <= 0 THEN
    RETURN 'not found';
  END IF;
  FOR tries IN 1..3 LOOP
    -- Not the copy of a shard that moves here: what the source has replaces or continues it.
    DELETE FROM tocsin.job_live j WHERE j.shard = shard_ AND j.job_id = job_id AND j.status = 0
       AND coalesce(shard_ = ANY ((SELECT p.shards FROM tocsin.place p)::smallint[]), true) RETURNING * INTO job;
    IF FOUND THEN
      IF to_regclass('tocsin.job_history_cancelled_' || to_char(now_, 'YYYYMMDD')) IS NULL THEN
        -- Not the other kinds: this transaction may stay open, and without their tables of today no node finishes jobs.
        PERFORM tocsin.ensure_history(now_::date, now_::date, '{cancelled}');
      END IF;
      LOOP
        INSERT INTO tocsin.job_history (job_id, action_time, fire_at, gmt_create, started_at, late_from, finished_at, type_id, shard, status, attempts,
                                        max_attempts, biz_id, idempotency_key, body_hash, node, traceparent, attribute, errors)
        VALUES (job.job_id, job.action_time, job.fire_at, job.gmt_create, job.started_at, job.late_from, now_, job.type_id, job.shard, 3, job.attempts,
                job.max_attempts, job.biz_id, job.idempotency_key, job.body_hash, job.node, job.traceparent, job.attribute, job.errors)
        ON CONFLICT DO NOTHING;
        EXIT WHEN FOUND;
        -- The id was given twice, and a job that was cancelled today had it first.
        PERFORM tocsin.renumber_finished_jobs(ARRAY[job_id], is_ending => true);
        IF NOT FOUND THEN
          RAISE EXCEPTION 'the id of job % is that of another job', job_id USING ERRCODE = 'serialization_failure', HINT = 'Cancel it again.';
        END IF;
        RAISE LOG 'the id of job % was given twice; the older record has a fresh id', job_id;
      END LOOP;
      INSERT INTO tocsin.job_count_delta (type_id, status, n, detail, event)
      VALUES (job.type_id, 0, -1, NULL, NULL), (job.type_id, 3, 1, tocsin.day_of(job.gmt_create) * 64, 3);
      RETURN 'cancelled';
    END IF;
    EXIT WHEN NOT tocsin.lives_here(shard_);
    state := tocsin.state_of_job(job_id);
    EXIT WHEN state IS NULL;
    IF state <> 'pending' THEN
      RETURN state;
    END IF;
    IF tries = 3 THEN
      RAISE EXCEPTION 'job % changes all the time: cancel it again', job_id USING ERRCODE = 'serialization_failure';
    END IF;
  END LOOP;
  UPDATE tocsin.outbox o SET is_cancelled = true, changed_at = clock_timestamp()
   WHERE o.job_id = job_id AND o.claimed_by IS NULL AND o.settled_at IS NULL AND NOT o.is_cancelled AND o.idempotency_key IS NULL;
  IF FOUND THEN
    RETURN 'cancelled';
  END IF;
  RETURN coalesce((SELECT tocsin.cancel_job(r.existing_job_id) FROM tocsin.relayed r WHERE r.job_id = job_id AND r.existing_job_id IS NOT NULL), tocsin.state_of_entry(job_id));
END $$;

-- Cancels the jobs of a business key inside the caller's transaction, of one type or of every type: the live ones, oldest
-- first, then names those that have ended, of the newest 1,000 of the key those of the type. Results as cancel_job. All
-- live ones or none: a key with more than 10,000 is refused (program_limit_exceeded). A key whose shard lives in another
-- database is refused with SQLSTATE TC001: what is there cannot be told from here.
CREATE FUNCTION tocsin.cancel_jobs(biz_id text, biz_type text DEFAULT NULL) RETURNS TABLE (job_id bigint, result text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_variable
DECLARE
  kind   integer;
  shard_ smallint;
  told   bigint[];  -- the live jobs
  ended  bigint[];
BEGIN
  IF biz_id IS NULL OR octet_length(biz_id) NOT BETWEEN 1 AND 128 THEN
    RAISE EXCEPTION 'biz_id: must have 1 to 128 bytes' USING ERRCODE = 'check_violation';
  END IF;
  IF biz_type IS NOT NULL THEN
    SELECT t.type_id INTO kind FROM tocsin.biz_type t WHERE t.name = biz_type;
    IF kind IS NULL THEN
      RAISE EXCEPTION 'biz_type: unknown type %', quote_literal(left(biz_type, 128)) USING ERRCODE = 'foreign_key_violation';
    END IF;
  END IF;
  shard_ := tocsin.shard_of(biz_id, tocsin.shard_count());
  IF NOT tocsin.lives_here(shard_) THEN
    PERFORM tocsin.refuse_shard(shard_);
  END IF;
  told := ARRAY(
    (SELECT j.job_id FROM tocsin.job_live j
      WHERE j.shard = shard_ AND j.biz_id = biz_id AND (kind IS NULL OR j.type_id = kind) ORDER BY j.job_id + 0 LIMIT 10001)
    -- Not those of above: an entry that was relayed to this database a moment ago is still here.
    UNION
    (SELECT o.job_id FROM tocsin.outbox o
      WHERE o.shard = shard_ AND o.settled_at IS NULL AND o.biz_id = biz_id AND (kind IS NULL OR o.type_id = kind)) ORDER BY 1);
  IF cardinality(told) > 10000 THEN
    RAISE EXCEPTION 'biz_id: more than 10000 jobs of % are live', quote_literal(biz_id)
      USING ERRCODE = 'program_limit_exceeded', HINT = 'Cancel them by type, or by POST /v1/jobs/cancel, which goes in steps.';
  END IF;
  FOREACH job_id IN ARRAY told LOOP
    result := tocsin.cancel_job(job_id);
    RETURN NEXT;
  END LOOP;
  -- The type is looked at behind the limit, or a rare one would read all that the key ever had.
  ended := ARRAY(SELECT h.job_id FROM (
    SELECT h.job_id, h.type_id FROM tocsin.job_history h WHERE h.biz_id = biz_id
     ORDER BY h.job_id + 0 DESC LIMIT 1000 + cardinality(told)) h
   WHERE h.job_id <> ALL (told) AND (kind IS NULL OR h.type_id = kind) LIMIT 1000);
  PERFORM tocsin.refuse_old_snapshot(ended);
  RETURN QUERY SELECT e.job_id, 'finished' FROM unnest(ended) e (job_id);
  -- Nothing was locked: the shard may have left since it was looked up, and its jobs with it.
  IF told = '{}' AND NOT tocsin.lives_here(shard_) THEN
    PERFORM tocsin.refuse_shard(shard_);
  END IF;
END $$;

-- Gives a pending job a new deadline inside the caller's transaction. Returns 'rescheduled', 'running', 'finished' or 'not
-- found'. An outbox entry without an idempotency key that no node has begun to relay gets the new deadline there.
CREATE FUNCTION tocsin.reschedule_job(job_id bigint, action_time timestamptz) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_variable
DECLARE
  kind    integer;
  state   text;
  shard_  smallint := (job_id & 1023)::smallint;
  now_    timestamptz;
BEGIN
  -- The transaction has its number before the clock is read: a scan that sees the number as finished sees the row.
  PERFORM pg_current_xact_id();
  now_ := clock_timestamp();
  IF job_id <= 0 THEN
    RETURN 'not found';
  END IF;
  IF action_time IS NULL OR action_time < '2000-01-01 00:00:00+00' OR action_time > now_ + interval '438312 hours' THEN
    RAISE EXCEPTION 'action_time: must lie between 2000-01-01 and 50 years ahead' USING ERRCODE = 'datetime_field_overflow';
  END IF;
  FOR tries IN 1..3 LOOP
    UPDATE tocsin.job_live j SET action_time = action_time, fire_at = greatest(action_time, clock_timestamp()), gmt_modified = clock_timestamp(),
           started_at = NULL, late_from = CASE WHEN action_time < clock_timestamp() THEN clock_timestamp() END
     WHERE j.shard = shard_ AND j.job_id = job_id AND j.status = 0 RETURNING j.type_id INTO kind;
    IF FOUND THEN
      IF action_time < now_ + tocsin.hint_window() THEN
        -- As in create_job.
        PERFORM pg_notify('tocsin_due', format('%s %s %s', job_id, kind, (extract(epoch FROM greatest(action_time, now_)) * 1000000)::bigint));
      END IF;
      RETURN 'rescheduled';
    END IF;
    EXIT WHEN NOT tocsin.lives_here(shard_);
    state := tocsin.state_of_job(job_id);
    EXIT WHEN state IS NULL;
    IF state <> 'pending' THEN
      RETURN state;
    END IF;
    IF tries = 3 THEN
      RAISE EXCEPTION 'job % changes all the time: reschedule it again', job_id USING ERRCODE = 'serialization_failure';
    END IF;
  END LOOP;
  UPDATE tocsin.outbox o SET action_time = action_time, late_from = CASE WHEN action_time < now_ THEN now_ END, changed_at = clock_timestamp()
   WHERE o.job_id = job_id AND o.claimed_by IS NULL AND o.settled_at IS NULL AND NOT o.is_cancelled AND o.idempotency_key IS NULL;
  IF FOUND THEN
    IF action_time < now_ + tocsin.hint_window() THEN
      NOTIFY tocsin_outbox;
    END IF;
    RETURN 'rescheduled';
  END IF;
  RETURN coalesce((SELECT tocsin.reschedule_job(r.existing_job_id, action_time) FROM tocsin.relayed r WHERE r.job_id = job_id AND r.existing_job_id IS NOT NULL),
                  tocsin.state_of_entry(job_id));
END $$;

-- 12. Role of sql handlers -------------------------------------------------------------------------------------------

-- Functions of sql handlers run as the role tocsin_handler. Beside the SQL interface (section 15) it has no rights of its
-- own: the business grants it EXECUTE on its functions, USAGE on their schema, and access to the tables they use. A role
-- belongs to the server, so another database may have created it already. Without CREATEROLE, an administrator must run
-- scripts/roles.sql.
DO $$
BEGIN
  BEGIN
    CREATE ROLE tocsin_handler NOLOGIN;
  EXCEPTION WHEN duplicate_object OR unique_violation OR insufficient_privilege THEN
    NULL;
  END;
  BEGIN
    -- The role of the nodes must be a member of it; a superuser is one anyway.
    IF to_regrole('tocsin_handler') IS NOT NULL AND NOT pg_has_role('tocsin_handler', 'MEMBER') THEN
      EXECUTE format('GRANT tocsin_handler TO %I', current_user);
    END IF;
  EXCEPTION WHEN insufficient_privilege THEN
    NULL;
  END;
  IF to_regrole('tocsin_handler') IS NOT NULL THEN
    GRANT USAGE ON SCHEMA tocsin TO tocsin_handler;  -- names the type tocsin.job; no table comes with it
  END IF;
END $$;

-- 13. Reports ---------------------------------------------------------------------------------------------------------

-- Events come from job_count_delta and histograms from the nodes, every ten seconds. Nothing is ever taken back, so
-- retention of jobs changes no report. Everything is kept for 400 days, and until as many later days have counts.

-- The same numbers by 15 minutes (every time zone's offset is a multiple of them), by hour and by UTC day. Each grain is
-- stored, so that a year is read without adding up 35,000 slots per type.
CREATE TABLE tocsin.report_slot (
  grain        smallint NOT NULL,  -- 1: 15 minutes, 2: hour, 3: UTC day
  type_id      integer NOT NULL,
  slot         timestamptz NOT NULL,
  created      bigint NOT NULL DEFAULT 0,
  done         bigint NOT NULL DEFAULT 0,
  cancelled    bigint NOT NULL DEFAULT 0,
  dead         bigint NOT NULL DEFAULT 0,  -- dropped_late included
  dropped_late bigint NOT NULL DEFAULT 0,
  revived      bigint NOT NULL DEFAULT 0,
  attempts     bigint NOT NULL DEFAULT 0,
  retried      bigint NOT NULL DEFAULT 0,
  -- Of first starts, from the nodes: how many, how many later than the type's target, and their lateness.
  started      bigint NOT NULL DEFAULT 0,
  missed       bigint NOT NULL DEFAULT 0,
  p50_ms       double precision,
  p90_ms       double precision,
  p99_ms       double precision,
  max_ms       double precision,
  version      bigint NOT NULL DEFAULT 1,  -- how often the row was written
  PRIMARY KEY (grain, slot, type_id)
) PARTITION BY LIST (grain);
CREATE TABLE tocsin.report_slot_quarter PARTITION OF tocsin.report_slot FOR VALUES IN (1) WITH (fillfactor = 80);
CREATE TABLE tocsin.report_slot_hour PARTITION OF tocsin.report_slot FOR VALUES IN (2) WITH (fillfactor = 80);
CREATE TABLE tocsin.report_slot_day PARTITION OF tocsin.report_slot FOR VALUES IN (3) WITH (fillfactor = 80);

-- Histograms with buckets of 1/16 relative width: each element is bucket << 44 | n, where bucket is the one of log_histogram.h.
-- Kept apart from the numbers, which a report reads without them.
CREATE TABLE tocsin.report_histogram (
  kind    smallint NOT NULL,  -- 0: lateness of first starts; 2, 4, 8: duration of attempts that ended in done, dead, a retry
  grain   smallint NOT NULL,  -- as report_slot; durations by hour alone
  slot    timestamptz NOT NULL,
  type_id integer NOT NULL,
  buckets bigint[] NOT NULL,
  PRIMARY KEY (kind, grain, slot, type_id)
) WITH (fillfactor = 80);
CREATE TABLE tocsin.report_duration_hour (
  slot    timestamptz NOT NULL,
  type_id integer NOT NULL,
  outcome smallint NOT NULL,  -- kind of report_histogram
  n       bigint NOT NULL,
  p50_ms  double precision NOT NULL,
  p90_ms  double precision NOT NULL,
  p99_ms  double precision NOT NULL,
  max_ms  double precision NOT NULL,
  PRIMARY KEY (slot, type_id, outcome)
) WITH (fillfactor = 80);

-- Days of time zones, by their beginning: 24 hours from slot on, as report_day has them. What is here is a cache: it is
-- used while report_zone_start.version is that of the UTC days that the 24 hours lie in, see keep_zone_days().
CREATE TABLE tocsin.report_zone_day (
  slot         timestamptz NOT NULL,
  type_id      integer NOT NULL,
  created      bigint NOT NULL,
  done         bigint NOT NULL,
  cancelled    bigint NOT NULL,
  dead         bigint NOT NULL,
  dropped_late bigint NOT NULL,
  revived      bigint NOT NULL,
  attempts     bigint NOT NULL,
  retried      bigint NOT NULL,
  p50_ms       double precision,
  p90_ms       double precision,
  p99_ms       double precision,
  max_ms       double precision,
  PRIMARY KEY (slot, type_id)
);
CREATE TABLE tocsin.report_zone_start (
  slot    timestamptz PRIMARY KEY,
  version bigint NOT NULL
);
-- The last flush of each node: one that is sent again after a lost answer adds nothing.
CREATE TABLE tocsin.report_flush (
  node_id    bigint PRIMARY KEY,
  seq        bigint NOT NULL,
  flushed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- What became of the jobs created on a day. A job that was moved here after its creation is created elsewhere.
CREATE TABLE tocsin.report_created_day (
  day       date NOT NULL,
  type_id   integer NOT NULL,
  created   bigint NOT NULL DEFAULT 0,
  done      bigint NOT NULL DEFAULT 0,
  cancelled bigint NOT NULL DEFAULT 0,
  dead      bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (day, type_id)
);
CREATE TABLE tocsin.report_delay_day (
  day     date NOT NULL,
  type_id integer NOT NULL,
  bucket  smallint NOT NULL,  -- of delay_bucket
  n       bigint NOT NULL,
  PRIMARY KEY (day, type_id, bucket)
);
CREATE TABLE tocsin.report_death (
  slot          timestamptz NOT NULL,  -- UTC day
  type_id       integer NOT NULL,
  reason        text NOT NULL,
  n             bigint NOT NULL,
  first_at      timestamptz NOT NULL,
  last_at       timestamptz NOT NULL,
  sample_job_id bigint,
  PRIMARY KEY (slot, type_id, reason)
);

-- What is due when: counted in the background, see docs/reports.md.
CREATE TABLE tocsin.horizon_slot (
  width      text NOT NULL CHECK (width IN ('minute', 'hour', 'day')),
  slot       timestamptz NOT NULL,
  type_id    integer NOT NULL,
  n          bigint NOT NULL,
  low        bigint NOT NULL,
  high       bigint NOT NULL,
  is_exact   boolean NOT NULL,
  counted_at timestamptz NOT NULL,
  PRIMARY KEY (width, slot, type_id)
);

CREATE TABLE tocsin.horizon_type (
  type_id    integer PRIMARY KEY,
  counted_at timestamptz NOT NULL,
  most_rows  integer NOT NULL DEFAULT 200000  -- a type with more pending jobs is sampled; smaller after a time-out
);

-- Every write that a person or a program with a token asked for.
CREATE TABLE tocsin.audit_log (
  audit_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at       timestamptz NOT NULL DEFAULT clock_timestamp(),
  actor    text NOT NULL,
  role     text NOT NULL,
  address  text,
  action   text NOT NULL,
  target   text,
  filter   jsonb,
  matched  bigint,
  changed  bigint,
  reason   text
);
CREATE INDEX audit_log_at ON tocsin.audit_log (at);

CREATE FUNCTION tocsin.merge_histograms(a bigint[], b bigint[]) RETURNS bigint[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (SELECT array_agg((m.bucket << 44) + m.n ORDER BY m.bucket)
          FROM (SELECT v >> 44 AS bucket, sum(v & 17592186044415)::bigint AS n FROM unnest(a || b) v GROUP BY 1) m);
-- Elements of a bucket are not added up: merge_histograms or histogram_quantiles do.
CREATE AGGREGATE tocsin.histogram_concat(bigint[]) (SFUNC = array_cat, STYPE = bigint[]);

-- p50, p90 and p99 in milliseconds: the middle of the bucket that holds them.
CREATE FUNCTION tocsin.histogram_quantiles(histogram bigint[]) RETURNS double precision[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (
  SELECT ARRAY[min(b.ms) FILTER (WHERE b.seen > floor(0.5 * b.total)), min(b.ms) FILTER (WHERE b.seen > floor(0.9 * b.total)),
               min(b.ms) FILTER (WHERE b.seen > floor(0.99 * b.total))]
  FROM (SELECT CASE WHEN c.bucket < 16 THEN c.bucket ELSE ((16 + (c.bucket & 15)) + 0.5) * 2.0 ^ ((c.bucket >> 4) - 1) END / 1000.0::double precision AS ms,
               sum(c.n) OVER (ORDER BY c.bucket) AS seen, sum(c.n) OVER () AS total
        FROM (SELECT v >> 44 AS bucket, sum(v & 17592186044415) AS n FROM unnest(histogram) v GROUP BY 1) c) b);

-- The middle of a bucket, in milliseconds.
CREATE FUNCTION tocsin.bucket_ms(bucket integer) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN bucket < 16 THEN bucket ELSE ((16 + (bucket & 15)) + 0.5) * 2.0 ^ ((bucket >> 4) - 1) END / 1000.0::double precision;

-- Events and lateness of spans of time, from hours, or from quarters where a span does not begin and end with an hour.
-- Span by span: the planner cannot know how few slots a span has, and would compare each with all.
CREATE FUNCTION tocsin.report_spans(starts timestamptz[], ends timestamptz[])
RETURNS TABLE (slot timestamptz, type_id integer, created bigint, done bigint, cancelled bigint, dead bigint, dropped_late bigint, revived bigint,
               attempts bigint, retried bigint, p50_ms double precision, p90_ms double precision, p99_ms double precision, max_ms double precision)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT s.slot, n.type_id, n.created, n.done, n.cancelled, n.dead, n.dropped_late, n.revived, n.attempts, n.retried,
         least(tocsin.bucket_ms(p.p50), n.max_ms), least(tocsin.bucket_ms(p.p90), n.max_ms), least(tocsin.bucket_ms(p.p99), n.max_ms), n.max_ms
  FROM (SELECT s.slot, s.ends, CASE WHEN date_part('minute', s.slot AT TIME ZONE 'UTC') + date_part('minute', s.ends AT TIME ZONE 'UTC') = 0
                                    THEN 2 ELSE 1 END::smallint AS grain FROM unnest(starts, ends) s (slot, ends)) s
  CROSS JOIN LATERAL (
    SELECT r.type_id, sum(r.created)::bigint AS created, sum(r.done)::bigint AS done, sum(r.cancelled)::bigint AS cancelled,
           sum(r.dead)::bigint AS dead, sum(r.dropped_late)::bigint AS dropped_late, sum(r.revived)::bigint AS revived,
           sum(r.attempts)::bigint AS attempts, sum(r.retried)::bigint AS retried, max(r.max_ms) AS max_ms
    FROM tocsin.report_slot r WHERE r.grain = s.grain AND r.slot >= s.slot AND r.slot < s.ends GROUP BY 1) n
  LEFT JOIN LATERAL (
    SELECT w.type_id, min(w.bucket) FILTER (WHERE w.seen > floor(0.5 * w.total)) AS p50,
           min(w.bucket) FILTER (WHERE w.seen > floor(0.9 * w.total)) AS p90, min(w.bucket) FILTER (WHERE w.seen > floor(0.99 * w.total)) AS p99
    FROM (SELECT b.type_id, b.bucket, sum(b.n) OVER (PARTITION BY b.type_id ORDER BY b.bucket) AS seen, sum(b.n) OVER (PARTITION BY b.type_id) AS total
          FROM (SELECT h.type_id, (v >> 44)::integer AS bucket, sum((v & 17592186044415)::double precision) AS n
                FROM tocsin.report_histogram h CROSS JOIN LATERAL unnest(h.buckets) v
                WHERE h.kind = 0 AND h.grain = s.grain AND h.slot >= s.slot AND h.slot < s.ends GROUP BY 1, 2) b) w
    GROUP BY 1) p ON p.type_id = n.type_id
$$;

-- Grows with every write of a slot that 24 hours may lie in which end on this UTC day.
CREATE VIEW tocsin.report_day_version AS
  SELECT d.day, sum(d.version)::bigint AS version
  FROM (SELECT r.slot AS day, r.version FROM tocsin.report_slot r WHERE r.grain = 3
        UNION ALL SELECT r.slot + interval '24 hours', r.version FROM tocsin.report_slot r WHERE r.grain = 3) d GROUP BY d.day;

-- Adds up days of time zones, the last ones first, whose numbers are not there or were of an older version. Few at once.
-- False: there was nothing to do, or another node does it. The version is read before the numbers. If
-- the numbers change in between, they are stored under the older version, and readers ignore them.
CREATE FUNCTION tocsin.keep_zone_days() RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  slots    timestamptz[];
  ends     timestamptz[];
  versions bigint[];
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtextextended('tocsin.keep_zone_days', 0)) THEN
    RETURN false;
  END IF;
  SELECT array_agg(m.slot), array_agg(m.slot + interval '24 hours'), array_agg(m.version) INTO slots, ends, versions FROM (
    SELECT s.slot, v.version FROM tocsin.report_day_version v
    -- Minutes after midnight in UTC at which the days of some time zone begin; 1440: those of UTC itself.
    CROSS JOIN unnest('{60, 120, 150, 180, 210, 240, 300, 360, 420, 480, 540, 570, 600, 615, 660, 675, 720, 780, 810, 840, 870, 900, 915, 960, 1020, 1050,
                        1080, 1095, 1110, 1140, 1170, 1200, 1230, 1260, 1320, 1380, 1440}'::integer[]) m
    CROSS JOIN LATERAL (SELECT v.day - interval '24 hours' + m * interval '1 minute' AS slot) s
    LEFT JOIN tocsin.report_zone_start k ON k.slot = s.slot
    -- When the last flush of its last day has come.
    WHERE v.day < clock_timestamp() - interval '24 hours 30 minutes' AND k.version IS DISTINCT FROM v.version
    ORDER BY s.slot DESC LIMIT 8) m;
  IF slots IS NULL THEN
    RETURN false;
  END IF;
  INSERT INTO tocsin.report_zone_day AS z SELECT * FROM tocsin.report_spans(slots, ends) ORDER BY 1, 2
  ON CONFLICT (slot, type_id) DO UPDATE SET
    created = excluded.created, done = excluded.done, cancelled = excluded.cancelled, dead = excluded.dead, dropped_late = excluded.dropped_late,
    revived = excluded.revived, attempts = excluded.attempts, retried = excluded.retried, p50_ms = excluded.p50_ms, p90_ms = excluded.p90_ms,
    p99_ms = excluded.p99_ms, max_ms = excluded.max_ms;
  INSERT INTO tocsin.report_zone_start AS z SELECT * FROM unnest(slots, versions)
  ON CONFLICT (slot) DO UPDATE SET version = excluded.version;
  RETURN true;
END $$;

-- The shards that live in this database.
CREATE FUNCTION tocsin.shards_here() RETURNS smallint[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(p.shards, ARRAY(SELECT s::smallint FROM generate_series(0, tocsin.shard_count() - 1) s)) FROM tocsin.place p
$$;

-- The lanes of this database that have a row due before a time, and when the first one is. A walk steps through the due
-- index from one lane with rows to the next, a probe each; where lanes have few rows it is cheaper to read the index
-- through. That is so below 1 KiB per lane, some 8 rows, even if all of them are due. The settings: the planner knows no
-- statistics of a table that is empty most of the time.
CREATE FUNCTION tocsin.lanes_due(before timestamptz DEFAULT statement_timestamp())
RETURNS TABLE (shard smallint, type_id integer, first_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
  here  smallint[] := tocsin.shards_here();
  lanes numeric;
  bytes numeric;
BEGIN
  -- At most: jobs of a type in as many shards as it has jobs.
  SELECT sum(greatest(least(t.n, cardinality(here)), 0)) INTO lanes FROM (
    SELECT c.type_id, sum(c.n) AS n FROM (
      SELECT c.type_id, c.n FROM tocsin.job_count c WHERE c.status IN (0, 1)
      UNION ALL SELECT d.type_id, d.n FROM tocsin.job_count_delta d WHERE d.status IN (0, 1)) c GROUP BY 1) t;
  -- A database of few shards has fewer tables.
  SELECT sum(pg_relation_size(to_regclass(format('tocsin.job_live_%s_due', lpad(i::text, 4, '0'))))) INTO bytes FROM generate_series(0, 7) i;
  IF bytes <= lanes * 1024 THEN
    RETURN QUERY
    SELECT s, l.type_id, l.first_at FROM unnest(here) s CROSS JOIN LATERAL (
      SELECT j.type_id, min(j.fire_at) AS first_at FROM tocsin.job_live j
       WHERE j.shard = s AND j.shard + 0 = s AND j.fire_at < before GROUP BY 1) l;
  ELSE
    RETURN QUERY
    WITH RECURSIVE w AS (
      SELECT s.shard, l.type_id, l.fire_at FROM unnest(here) s (shard) CROSS JOIN LATERAL (
        SELECT j.type_id, j.fire_at FROM tocsin.job_live j WHERE j.shard = s.shard AND j.shard + 0 = s.shard::integer
         ORDER BY j.type_id, j.fire_at LIMIT 1) l
      UNION ALL
      SELECT w.shard, l.type_id, l.fire_at FROM w CROSS JOIN LATERAL (
        SELECT j.type_id, j.fire_at FROM tocsin.job_live j WHERE j.shard = w.shard AND j.shard + 0 = w.shard::integer AND j.type_id > w.type_id
         ORDER BY j.type_id, j.fire_at LIMIT 1) l)
    SELECT w.shard, w.type_id, w.fire_at FROM w WHERE w.fire_at < before;
  END IF;
END $$;
COMMENT ON FUNCTION tocsin.lanes_due(timestamptz) IS 'Shards and types that have a row due before a time';

-- Counts what is due when, of the type whose count is the oldest and older than a minute. False: there was nothing to do,
-- or another node counts. Shards are hashes of biz_id, so some of them are a fair sample of all: a type with more pending
-- jobs than most_rows is counted in as many shards as hold half of that. low and high are the bounds of 95 %: of a sample
-- of jobs, or, if that is wider, of a sample of shards that differ as much as those that were read (1 + 1.6 / (read - 1)
-- widens the normal distribution to that of Student, for few shards). One shard does not show how much shards differ.
CREATE FUNCTION tocsin.count_horizon() RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  kind    integer;
  most    integer;
  pending bigint;
  here    smallint[] := tocsin.shards_here();
  sample  smallint[];
  factor  double precision;
  read_   double precision;
  now_    timestamptz := clock_timestamp();
  epoch_  timestamptz := '2000-01-01 00:00:00+00';
  minute_ timestamptz := date_bin('1 minute', clock_timestamp(), '2000-01-01 00:00:00+00');
  near_   timestamptz := minute_ + interval '2 hours';  -- slots of a minute end here
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtextextended('tocsin.count_horizon', 0)) THEN
    RETURN false;
  END IF;
  SELECT t.type_id, coalesce(h.most_rows, 200000) INTO kind, most
    FROM tocsin.biz_type t LEFT JOIN tocsin.horizon_type h USING (type_id)
   WHERE t.removed_at IS NULL AND coalesce(h.counted_at < now_ - interval '1 minute', true)
   ORDER BY h.counted_at NULLS FIRST LIMIT 1;
  IF NOT FOUND THEN
    DELETE FROM tocsin.horizon_slot h USING tocsin.biz_type t WHERE t.type_id = h.type_id AND t.removed_at IS NOT NULL;
    RETURN false;
  END IF;
  SELECT coalesce(sum(c.n), 0) INTO pending FROM (
    SELECT c.n FROM tocsin.job_count c WHERE c.type_id = kind AND c.status = 0
    UNION ALL SELECT d.n FROM tocsin.job_count_delta d WHERE d.type_id = kind AND d.status = 0) c;
  IF pending < most THEN
    sample := here;
  ELSE
    SELECT array_agg(s.s) INTO sample FROM (
      SELECT s FROM unnest(here) s ORDER BY random() LIMIT greatest(1, floor(cardinality(here) * (most / 2.0) / pending))) s;
  END IF;
  read_ := greatest(cardinality(sample), 1);
  factor := cardinality(here) / read_;
  DELETE FROM tocsin.horizon_slot h WHERE h.type_id = kind;
  INSERT INTO tocsin.horizon_slot (width, slot, type_id, n, low, high, is_exact, counted_at)
  SELECT e.width, e.slot, kind, round(e.n * factor), greatest(e.n, floor(e.n * factor - e.error)), ceil(e.n * factor + e.error), factor = 1, now_
    FROM (
      SELECT c.width, c.slot, sum(c.n) AS n,
             1.96 * sqrt(greatest(sum(c.n) * factor * (factor - 1), read_ * factor * (factor - 1) * (1 + 1.6 / greatest(read_ - 1, 1)) ^ 2
                                  * (sum(c.n ^ 2) - sum(c.n) ^ 2 / read_) / greatest(read_ - 1, 1))) AS error
      FROM (
        SELECT w.width, w.slot, m.s, sum(m.n) AS n FROM (
          -- By minute or hour first: bringing each job into its three slots takes three times as long.
          SELECT s, j.fire_at < near_ AS is_near, count(*)::double precision AS n,
                 date_bin(CASE WHEN j.fire_at < near_ THEN interval '1 minute' ELSE interval '1 hour' END, j.fire_at, epoch_) AS slot
            FROM unnest(sample) s CROSS JOIN LATERAL (
              SELECT j.fire_at FROM tocsin.job_live j
               WHERE j.shard = s AND j.shard + 0 = s AND j.type_id = kind AND j.fire_at >= minute_ AND j.fire_at < minute_ + interval '90 days'
                 AND j.status = 0) j
           GROUP BY 1, 2, 4) m
        CROSS JOIN LATERAL (VALUES ('minute', m.slot, near_), ('hour', date_bin('1 hour', m.slot, epoch_), minute_ + interval '7 days'),
                                   ('day', date_bin('1 day', m.slot, epoch_), minute_ + interval '90 days')) w (width, slot, reach)
        WHERE m.slot < w.reach AND (m.is_near OR w.width <> 'minute') GROUP BY 1, 2, 3) c
      GROUP BY 1, 2) e;
  INSERT INTO tocsin.horizon_type AS h (type_id, counted_at) VALUES (kind, now_)
  ON CONFLICT (type_id) DO UPDATE SET counted_at = excluded.counted_at;
  RETURN true;
END $$;

-- After count_horizon has met its time-out: that type is not counted again at once, and then in fewer rows.
CREATE FUNCTION tocsin.shrink_horizon() RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO tocsin.horizon_type AS h (type_id, counted_at, most_rows)
  SELECT t.type_id, clock_timestamp(), greatest(1000, coalesce(h.most_rows, 200000) / 4)
    FROM tocsin.biz_type t LEFT JOIN tocsin.horizon_type h USING (type_id)
   WHERE t.removed_at IS NULL AND coalesce(h.counted_at < clock_timestamp() - interval '1 minute', true)
   ORDER BY h.counted_at NULLS FIRST LIMIT 1
  ON CONFLICT (type_id) DO UPDATE SET counted_at = excluded.counted_at, most_rows = excluded.most_rows
$$;

-- Views for reading: role tocsin_report may read them, and nothing else.

CREATE VIEW tocsin.report_hour AS
  SELECT s.slot, t.name AS biz_type, s.created, s.done, s.cancelled, s.dead, s.dropped_late, s.revived, s.attempts, s.retried,
         least(s.p50_ms, s.max_ms) AS p50_ms, least(s.p90_ms, s.max_ms) AS p90_ms, least(s.p99_ms, s.max_ms) AS p99_ms, s.max_ms
  FROM tocsin.report_slot s JOIN tocsin.biz_type t USING (type_id) WHERE s.grain = 2;
COMMENT ON VIEW tocsin.report_hour IS 'Events by hour and type, with the lateness of first starts';

CREATE VIEW tocsin.report_day AS
  SELECT s.slot, t.name AS biz_type, s.created, s.done, s.cancelled, s.dead, s.dropped_late, s.revived, s.attempts, s.retried,
         least(s.p50_ms, s.max_ms) AS p50_ms, least(s.p90_ms, s.max_ms) AS p90_ms, least(s.p99_ms, s.max_ms) AS p99_ms, s.max_ms
  FROM tocsin.report_slot s JOIN tocsin.biz_type t USING (type_id) WHERE s.grain = 3;
COMMENT ON VIEW tocsin.report_day IS 'Events by UTC day and type, with the lateness of first starts';

CREATE VIEW tocsin.report_lateness AS
  SELECT s.slot, t.name AS biz_type, s.started AS n, least(s.p50_ms, s.max_ms) AS p50_ms, least(s.p90_ms, s.max_ms) AS p90_ms, least(s.p99_ms, s.max_ms) AS p99_ms, s.max_ms
  FROM tocsin.report_slot s JOIN tocsin.biz_type t USING (type_id) WHERE s.grain = 2 AND s.started > 0;
COMMENT ON VIEW tocsin.report_lateness IS 'Lateness of first starts by hour and type';

CREATE VIEW tocsin.report_duration AS
  SELECT d.slot, t.name AS biz_type, CASE d.outcome WHEN 2 THEN 'done' WHEN 4 THEN 'dead' ELSE 'retry' END AS outcome,
         d.n, least(d.p50_ms, d.max_ms) AS p50_ms, least(d.p90_ms, d.max_ms) AS p90_ms, least(d.p99_ms, d.max_ms) AS p99_ms, d.max_ms
  FROM tocsin.report_duration_hour d JOIN tocsin.biz_type t USING (type_id);
COMMENT ON VIEW tocsin.report_duration IS 'Duration of attempts by hour, type and outcome';

CREATE VIEW tocsin.report_slo AS
  SELECT s.biz_type, s.target_ms, s.target_share, s.days, s.n, s.missed,
         CASE WHEN s.n > 0 THEN 1 - s.missed / s.n::double precision ELSE 1 END AS share,
         CASE WHEN s.missed = 0 THEN 1 WHEN s.target_share < 1 THEN 1 - s.missed / (s.n * (1 - s.target_share::numeric)) ELSE 0 END::double precision AS budget_left,
         s.missed <= s.n * (1 - s.target_share::numeric) AS is_met
  FROM (SELECT t.name AS biz_type, (t.slo ->> 'lateness_ms')::double precision AS target_ms, (t.slo ->> 'share')::double precision AS target_share,
               30::bigint AS days, coalesce(sum(r.started), 0)::bigint AS n, coalesce(sum(r.missed), 0)::bigint AS missed
        FROM tocsin.biz_type t
        LEFT JOIN tocsin.report_slot r ON r.grain = 3 AND r.type_id = t.type_id AND r.slot > statement_timestamp() - interval '30 days'
        WHERE t.slo IS NOT NULL AND t.removed_at IS NULL GROUP BY t.type_id) s;
COMMENT ON VIEW tocsin.report_slo IS 'First starts of the last 30 days against the target of their type';

CREATE VIEW tocsin.report_dead AS
  SELECT d.slot, t.name AS biz_type, d.reason, d.n, d.first_at, d.last_at, d.sample_job_id
  FROM tocsin.report_death d JOIN tocsin.biz_type t USING (type_id);
COMMENT ON VIEW tocsin.report_dead IS 'Deaths by UTC day, type and reason';

CREATE VIEW tocsin.report_outcome AS
  SELECT (c.day::timestamp AT TIME ZONE 'UTC') AS created_day, t.name AS biz_type, c.created, c.done, c.cancelled, c.dead,
         c.created - c.done - c.cancelled - c.dead AS open
  FROM tocsin.report_created_day c JOIN tocsin.biz_type t USING (type_id);
COMMENT ON VIEW tocsin.report_outcome IS 'What became of the jobs created on each UTC day';

CREATE VIEW tocsin.report_delay AS
  SELECT t.name AS biz_type, CASE d.bucket WHEN 0 THEN 0 ELSE 1000 * 2 ^ (d.bucket - 1) END::double precision AS from_ms,
         (1000 * 2 ^ d.bucket)::double precision AS to_ms, sum(d.n)::bigint AS n
  FROM tocsin.report_delay_day d JOIN tocsin.biz_type t USING (type_id) GROUP BY t.type_id, d.bucket;
COMMENT ON VIEW tocsin.report_delay IS 'How far ahead deadlines were set, of the jobs created in the last 400 days';

CREATE VIEW tocsin.horizon AS
  SELECT h.slot, h.width, t.name AS biz_type, h.n, h.low, h.high, h.is_exact, h.counted_at
  FROM tocsin.horizon_slot h JOIN tocsin.biz_type t USING (type_id);
COMMENT ON VIEW tocsin.horizon IS 'Pending jobs by the time they are due';

-- Costs what is due, and 2,000 rows per type: with more, due is 2,000 and is_exact false. A job whose lease has ended is
-- due, and holds no place of max_running.
CREATE VIEW tocsin.backlog AS
  WITH o AS MATERIALIZED (SELECT l.type_id, min(l.first_at) AS oldest_due_at, array_agg(l.shard) AS shards FROM tocsin.lanes_due() l GROUP BY 1)
  SELECT t.name AS biz_type, least(d.due, 2000) AS due, o.oldest_due_at, (date_part('epoch', statement_timestamp() - o.oldest_due_at) * 1000)::double precision AS oldest_age_ms,
         CASE WHEN o.oldest_due_at IS NULL THEN NULL
              WHEN t.paused AND (t.paused_until IS NULL OR t.paused_until > statement_timestamp()) THEN 'paused'
              WHEN t.max_running <= (SELECT sum(c.n) FROM (SELECT c.n FROM tocsin.job_count c WHERE c.type_id = t.type_id AND c.status = 1
                                     UNION ALL SELECT d.n FROM tocsin.job_count_delta d WHERE d.type_id = t.type_id AND d.status = 1) c) - d.expired THEN 'max_running'
              WHEN t.catch_up ->> 'rate_per_s' IS NOT NULL AND o.oldest_due_at < statement_timestamp() - interval '1 second' THEN 'catch_up'
              WHEN t.rate_per_s IS NOT NULL THEN 'rate_per_s'
              WHEN t.handler ->> 'kind' = 'pull' THEN 'consumers'
              ELSE 'workers' END AS waits_for,
         d.due <= 2000 AS is_exact
  FROM tocsin.biz_type t
  LEFT JOIN o ON o.type_id = t.type_id
  CROSS JOIN LATERAL (
    SELECT count(*) AS due, count(*) FILTER (WHERE x.status = 1) AS expired FROM (
      SELECT j.status FROM unnest(o.shards) s CROSS JOIN LATERAL (
        SELECT j.status FROM tocsin.job_live j WHERE j.shard = s AND j.shard + 0 = s AND j.type_id = t.type_id AND j.fire_at < statement_timestamp() LIMIT 2001) j LIMIT 2001) x) d
  WHERE t.removed_at IS NULL;
COMMENT ON VIEW tocsin.backlog IS 'Jobs whose time has passed, by type';

-- Fails unless the time zone exists. PostgreSQL takes any word with a number behind it for one, by the rules of POSIX, and
-- '+05:30' for the west: names with digits are looked up in the list of zones, which takes 100 ms.
CREATE FUNCTION tocsin.require_time_zone(tz text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM statement_timestamp() AT TIME ZONE tz;
  IF tz ~ '[0-9]' AND NOT EXISTS (SELECT FROM pg_timezone_names z WHERE lower(z.name) = lower(tz)) THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = format('time zone "%s" not recognized', tz);
  END IF;
END $$;

-- The same as report_day, by the days of a time zone that begin within [since, until): from the days that are kept, and
-- where these have to be added up still, from hours or quarters.
CREATE FUNCTION tocsin.report_day_at(tz text, since timestamptz DEFAULT '-infinity', until timestamptz DEFAULT 'infinity')
RETURNS TABLE (slot timestamptz, biz_type text, created bigint, done bigint, cancelled bigint, dead bigint, dropped_late bigint, revived bigint,
               attempts bigint, retried bigint, p50_ms double precision, p90_ms double precision, p99_ms double precision, max_ms double precision)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
#variable_conflict use_column
DECLARE
  oldest timestamptz := (SELECT min(s.slot) FROM tocsin.report_slot s WHERE s.grain = 2);
  newest timestamptz := (SELECT max(s.slot) FROM tocsin.report_slot s WHERE s.grain = 2);
BEGIN
  PERFORM tocsin.require_time_zone(tz);
  IF oldest IS NULL THEN
    RETURN;
  END IF;
  RETURN QUERY
  WITH days AS MATERIALIZED (
    SELECT d.slot, d.ends, date_trunc('day', d.ends - interval '1 microsecond', 'UTC') AS day
    FROM (SELECT g AT TIME ZONE tz AS slot, (g + interval '1 day') AT TIME ZONE tz AS ends
          FROM generate_series(date_trunc('day', greatest(oldest, since) AT TIME ZONE tz), least(newest + interval '59 minutes', until) AT TIME ZONE tz, interval '1 day') g) d
    WHERE d.slot >= since AND d.slot < until),
  kept AS MATERIALIZED (
    SELECT d.slot FROM days d JOIN tocsin.report_zone_start k USING (slot) JOIN tocsin.report_day_version v USING (day, version)
    WHERE d.ends - d.slot = interval '24 hours'),
  rest AS (SELECT d.slot, d.ends FROM days d WHERE NOT EXISTS (SELECT FROM kept k WHERE k.slot = d.slot)),
  r AS (
    SELECT z.* FROM kept JOIN tocsin.report_zone_day z USING (slot)
    UNION ALL SELECT * FROM tocsin.report_spans(ARRAY(SELECT r.slot FROM rest r ORDER BY 1), ARRAY(SELECT r.ends FROM rest r ORDER BY 1)))
  SELECT r.slot, t.name, r.created, r.done, r.cancelled, r.dead, r.dropped_late, r.revived, r.attempts, r.retried,
         r.p50_ms, r.p90_ms, r.p99_ms, r.max_ms
  FROM r JOIN tocsin.biz_type t USING (type_id);
END $$;
COMMENT ON FUNCTION tocsin.report_day_at(text, timestamptz, timestamptz) IS 'Events by the days of a time zone, with the lateness of first starts';

-- 14. Bulk operations ------------------------------------------------------------------------------------------------

-- In the control database: one row per bulk operation. One node runs it until lease_until; another one takes it over
-- when that has passed. action and state are stored as text. DO NOT CHANGE the words.
CREATE TABLE tocsin.bulk (
  bulk_id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  action            text NOT NULL CHECK (action IN ('cancel', 'reschedule', 'run', 'retry')),
  state             text NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'done', 'stopped', 'failed')),
  filter            jsonb NOT NULL,    -- as the caller sent it; the columns below say the same, resolved
  biz_id            text,
  type_id           integer,
  from_time         timestamptz,
  to_time           timestamptz,
  death_reason      text,
  action_time       timestamptz,
  delay_us          bigint,
  spread_us         bigint,
  rate_per_s        double precision,
  reason            text NOT NULL DEFAULT '',
  actor             text NOT NULL DEFAULT '',
  matched           bigint NOT NULL,
  changed           bigint NOT NULL DEFAULT 0,
  is_stop_requested boolean NOT NULL DEFAULT false,
  node_id           bigint NOT NULL,
  lease_until       timestamptz NOT NULL,
  started_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
  finished_at       timestamptz,
  error             text NOT NULL DEFAULT ''
);
CREATE INDEX bulk_running ON tocsin.bulk (lease_until) WHERE state = 'running';

-- In every database: how far a bulk operation has come among the shards that live there. Written in the transaction
-- that changes the jobs. last_job_id: all matching jobs up to this id have been visited. locked: those of them that
-- another transaction held; they are visited again at the end.
CREATE TABLE tocsin.bulk_progress (
  bulk_id     bigint PRIMARY KEY,
  last_job_id bigint NOT NULL DEFAULT 0,
  changed     bigint NOT NULL DEFAULT 0,
  is_done     boolean NOT NULL DEFAULT false,
  locked      bigint[] NOT NULL DEFAULT '{}',
  written_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- A bulk operation is recorded when it begins; what it does and how many jobs it has changed is read from its row.
CREATE VIEW tocsin.audit AS
  SELECT a.at, a.actor, a.role, a.address, a.action, a.target,
         CASE WHEN b.bulk_id IS NULL THEN a.filter ELSE jsonb_build_object('action', b.action) || coalesce(a.filter, '{}') END AS filter, a.matched, coalesce(a.changed, b.changed) AS changed, a.reason
  FROM tocsin.audit_log a LEFT JOIN tocsin.bulk b ON a.action = 'startBulk' AND b.bulk_id = CASE a.action WHEN 'startBulk' THEN a.target::bigint END;
COMMENT ON VIEW tocsin.audit IS 'Writes through the API by people and programs with a token';

-- 15. Rights ---------------------------------------------------------------------------------------------------------

-- PostgreSQL lets everybody call new functions. A role with USAGE on the schema must not be able to cancel jobs for that:
-- each function is granted to those who need it. A business role gets the SQL interface from an administrator
-- (scripts/roles.sql); functions of sql handlers may create and cancel the jobs that follow.
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA tocsin FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('tocsin_handler') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION tocsin.create_job(text, text, timestamptz, jsonb, text), tocsin.cancel_job(bigint), tocsin.cancel_jobs(text, text),
      tocsin.reschedule_job(bigint, timestamptz) TO tocsin_handler;
  END IF;
END $$;

-- A role belongs to the server: another database may have made it, or an administrator has to.
DO $$
BEGIN
  BEGIN
    CREATE ROLE tocsin_report NOLOGIN;
  EXCEPTION WHEN duplicate_object OR unique_violation OR insufficient_privilege THEN
    NULL;
  END;
  IF to_regrole('tocsin_report') IS NOT NULL THEN
    GRANT USAGE ON SCHEMA tocsin TO tocsin_report;
    GRANT SELECT ON tocsin.report_hour, tocsin.report_day, tocsin.report_lateness, tocsin.report_duration, tocsin.report_slo, tocsin.report_dead,
      tocsin.report_outcome, tocsin.report_delay, tocsin.horizon, tocsin.backlog, tocsin.audit TO tocsin_report;
    GRANT EXECUTE ON FUNCTION tocsin.lanes_due(timestamptz), tocsin.report_day_at(text, timestamptz, timestamptz) TO tocsin_report;
  END IF;
END $$;
