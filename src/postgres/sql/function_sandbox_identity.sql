-- Which row of pg_proc the sandbox function is: altering or replacing it writes another row.
-- Index: that of pg_proc by oid.
SELECT p.oid::text || '/' || p.xmin::text
FROM pg_catalog.pg_proc p
WHERE p.oid = to_regprocedure('pg_temp.tocsin_call(text,text,tocsin.job[])')
