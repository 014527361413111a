-- Rows of live tables wait and then go; nothing reads them by an index alone, and no plan depends on how many there are. So inserts alone
-- are no reason to vacuum, nor is it one to analyze that some tens of thousands came: both only took time from those who create them.
DO $$
DECLARE
  leaf text;
BEGIN
  FOR leaf IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'tocsin.job_live'::regclass ORDER BY 1 LOOP
    EXECUTE format('ALTER TABLE tocsin.%I SET (autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_threshold = 50000)', leaf);
  END LOOP;
END $$;
