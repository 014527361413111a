-- Live tables change all the time, so they are analyzed often. No plan depends on what stands in a job, only on its keys:
-- small samples of those, none of the rest, and only after many changes.
-- A pass over a table then costs a third.
DO $$
DECLARE
  leaf text;
  name text;
BEGIN
  FOR leaf IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'tocsin.job_live'::regclass ORDER BY 1 LOOP
    FOR name IN SELECT a.attname FROM pg_attribute a WHERE a.attrelid = format('tocsin.%I', leaf)::regclass AND a.attnum > 0 AND NOT a.attisdropped LOOP
      EXECUTE format('ALTER TABLE tocsin.%I ALTER COLUMN %I SET STATISTICS %s', leaf, name,
        CASE WHEN name IN ('job_id', 'biz_id', 'idempotency_key', 'type_id', 'shard', 'status', 'fire_at') THEN 10 ELSE 0 END);
    END LOOP;
    -- The first and the last column of this index are expressions, which have samples of their own.
    EXECUTE format('ALTER INDEX tocsin.%I ALTER COLUMN 1 SET STATISTICS 10', leaf || '_due');
    EXECUTE format('ALTER INDEX tocsin.%I ALTER COLUMN 4 SET STATISTICS 10', leaf || '_due');
    EXECUTE format('ALTER TABLE tocsin.%I SET (autovacuum_analyze_threshold = 10000, autovacuum_analyze_scale_factor = 0.1)', leaf);
  END LOOP;
END $$;
