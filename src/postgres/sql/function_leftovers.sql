-- What a function may leave in its session for later calls: whether a cursor, whether temporary objects beside the
-- sandbox function, whose oid is {{sandbox_oid}}.
-- Index: that of pg_depend by the object referred to.
SELECT EXISTS (SELECT FROM pg_catalog.pg_cursors WHERE is_holdable),
       EXISTS (SELECT FROM pg_catalog.pg_depend
               WHERE refclassid = 'pg_catalog.pg_namespace'::regclass AND refobjid = pg_my_temp_schema()
                 AND NOT (classid = 'pg_catalog.pg_proc'::regclass AND objid = {{sandbox_oid}}))
