-- The tables of live jobs: shard s lies in table s modulo 8. DO NOT CHANGE: statements name the tables (src/postgres/queries.cc).
-- A statement over many shards opens every table and index that it may touch, so its fixed cost grows with the tables, not with
-- the shards; eight keep it small and still spread the writers. Every shard has its own range of the _due index.
-- An installation that had one table per shard is converted: its rows move.

DO $$
DECLARE
  old    text;
  number integer;
  leaf   text;
  moved  text[] := '{}';
BEGIN
  CREATE SCHEMA tocsin_0001;
  FOR old IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'tocsin.job_live'::regclass ORDER BY 1 LOOP
    EXECUTE format('ALTER TABLE tocsin.job_live DETACH PARTITION tocsin.%I', old);
    EXECUTE format('ALTER TABLE tocsin.%I SET SCHEMA tocsin_0001', old);
    moved := moved || old;
  END LOOP;
  IF moved <> '{}' AND EXISTS (SELECT 1 FROM tocsin.node n WHERE n.heartbeat_at > clock_timestamp() - interval '10 seconds') THEN
    RAISE EXCEPTION 'nodes of the version before are running: stop them first, they cannot work with the new tables';
  END IF;
  FOR number IN 0 .. least(8, tocsin.shard_count()) - 1 LOOP
    leaf := 'job_live_' || lpad(number::text, 4, '0');
    -- Queue tables swing between empty and full: vacuum early and without pauses.
    EXECUTE format('CREATE TABLE tocsin.%I PARTITION OF tocsin.job_live FOR VALUES IN (%s) WITH (
      autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0,
      autovacuum_analyze_threshold = 1000, autovacuum_analyze_scale_factor = 0.05)',
      leaf, (SELECT string_agg(s::text, ', ' ORDER BY s) FROM generate_series(number, tocsin.shard_count() - 1, 8) s));
    EXECUTE format('CREATE UNIQUE INDEX %I ON tocsin.%I (job_id)', leaf || '_id', leaf);
    -- Expressions, + 0: a statement that looks jobs up by shard and job_id must not find this index fitting, as it would on tables that
    -- are empty when it is planned; it would read the whole shard for every job.
    EXECUTE format('CREATE INDEX %I ON tocsin.%I ((shard + 0), type_id, fire_at, (job_id + 0))', leaf || '_due', leaf);
    EXECUTE format('CREATE INDEX %I ON tocsin.%I (biz_id)', leaf || '_biz', leaf);
    EXECUTE format('CREATE UNIQUE INDEX %I ON tocsin.%I (biz_id, type_id, idempotency_key) WHERE idempotency_key IS NOT NULL', leaf || '_key', leaf);
  END LOOP;
  FOREACH old IN ARRAY moved LOOP
    EXECUTE format('INSERT INTO tocsin.job_live SELECT * FROM tocsin_0001.%I', old);
  END LOOP;
  DROP SCHEMA tocsin_0001 CASCADE;
END $$;
