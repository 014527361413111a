-- The function of the session through which functions of sql handlers are called: it runs as tocsin_handler, its owner.
-- The session's settings fit Tocsin's statements; the called function gets PostgreSQL's defaults. Deferred constraints
-- are checked, and their triggers run, before the sandbox is left: at the commit they would run as the node.
-- Index: none is read.
CREATE FUNCTION pg_temp.tocsin_call(schema text, name text, jobs tocsin.job[])
RETURNS TABLE (job_id bigint, answer jsonb)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = on SET enable_bitmapscan = on SET enable_hashjoin = on SET enable_mergejoin = on
SET plan_cache_mode = auto
AS $fence$
BEGIN
  RETURN QUERY EXECUTE format('SELECT j.job_id, %I.%I(j) FROM unnest($1) j', schema, name) USING jobs;
  SET CONSTRAINTS ALL IMMEDIATE;
END $fence$
