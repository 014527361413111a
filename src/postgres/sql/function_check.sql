-- Whether $1.$2 can be called by a sql handler: returns one jsonb, takes one tocsin.job, may be executed, its schema
-- used.
-- Index: that of pg_proc by name.
SELECT p.prokind = 'f' AND NOT p.proretset AND p.prorettype = 'pg_catalog.jsonb'::regtype,
       p.pronargs >= 1 AND p.pronargs - p.pronargdefaults <= 1 AND p.proargtypes[0] = 'tocsin.job'::regtype,
       has_function_privilege('tocsin_handler', p.oid, 'EXECUTE'),
       has_schema_privilege('tocsin_handler', n.oid, 'USAGE')
FROM pg_catalog.pg_proc p
JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = $1 AND p.proname = $2
ORDER BY 2 DESC
LIMIT 1
