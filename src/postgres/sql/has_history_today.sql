-- Whether history has a table of each kind for today. An empty one may have been dropped while the clock was ahead.
-- Index: that of pg_class by name.
SELECT bool_and(to_regclass('tocsin.job_history_' || kind || '_'
                            || to_char(statement_timestamp() AT TIME ZONE 'UTC', 'YYYYMMDD')) IS NOT NULL)
FROM unnest('{done,cancelled,dead}'::text[]) kind
