-- Several databases: home's table of them, the place of every shard, and in each database which shards live there.

-- At home, one row per database of the installation.
CREATE TABLE tocsin.database (
  place        smallint PRIMARY KEY CHECK (place BETWEEN 0 AND 63),  -- 0: home. DO NOT CHANGE: the shard map names it
  name         text COLLATE "C" NOT NULL UNIQUE,
  address      text NOT NULL,    -- host, port and database as last given to migrate: to know one that does not answer
  server       bigint NOT NULL,  -- the cluster's system identifier; with the next, what a database is known by
  database_oid bigint NOT NULL,
  gmt_create   timestamptz NOT NULL DEFAULT clock_timestamp(),
  UNIQUE (server, database_oid)
);

-- Where each shard lives, from shard 0 on; '{}' until the first migration has said it. An installation that is older than this
-- has all its shards at home.
ALTER TABLE tocsin.shard_map ADD COLUMN places smallint[] NOT NULL DEFAULT '{}';
UPDATE tocsin.shard_map SET version = version + 1, places = array_fill(0::smallint, ARRAY[tocsin.shard_count()])
 WHERE (SELECT min(m.applied_at) FROM tocsin.migration m) < transaction_timestamp();

-- In every database, one row: what it is in its installation.
CREATE TABLE tocsin.place (
  is_only      boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  installation uuid NOT NULL DEFAULT gen_random_uuid(),  -- the same in all its databases
  place        smallint NOT NULL DEFAULT 0,
  name         text NOT NULL DEFAULT current_database(),
  shards       smallint[]  -- that live here; NULL: all of them
);
INSERT INTO tocsin.place DEFAULT VALUES;

CREATE FUNCTION tocsin.lives_here(shard smallint) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(shard = ANY (p.shards), true) FROM tocsin.place p
$$;

-- What a write to a shard that does not live here ends with; evaluated only then. What replication brings may come before the shard does.
CREATE FUNCTION tocsin.refuse_shard(shard smallint) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF current_setting('session_replication_role') = 'replica' THEN
    RETURN true;
  END IF;
  RAISE EXCEPTION 'shard % does not live in the database %', shard, (SELECT p.name FROM tocsin.place p)
    USING ERRCODE = 'TC001', HINT = 'Use the database that /v1/shards names for this shard, or REST on any node.';
END $$;

-- Says which shards live here; NULL: all. The fence is a constraint, so that a database that is alone, and has none, pays nothing, and
-- no writer can pass it with an older picture: replacing it waits for every transaction that has written. A bit per shard, for
-- a list would be read from its beginning for every row. NOT VALID: it promises the planner nothing.
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
REVOKE ALL ON FUNCTION tocsin.set_shards_here(smallint[]) FROM PUBLIC;

-- As before, but for a job whose shard lives elsewhere, which is not "not found".
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
  PERFORM 1 FROM tocsin.job_live j WHERE j.shard = (job_id & 1023)::smallint AND j.job_id = job_id;
  IF FOUND THEN
    RETURN 'running';
  END IF;
  PERFORM 1 FROM tocsin.job_history h WHERE h.job_id = job_id;
  IF FOUND THEN
    RETURN 'finished';
  END IF;
  IF NOT tocsin.lives_here((job_id & 1023)::smallint) THEN
    PERFORM tocsin.refuse_shard((job_id & 1023)::smallint);
  END IF;
  RETURN 'not found';
END $$;
