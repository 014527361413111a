-- Whether history has a table for today.
-- Index: that of pg_class by name.
SELECT to_regclass('tocsin.job_history_done_' || to_char(statement_timestamp() AT TIME ZONE 'UTC', 'YYYYMMDD'))
       IS NOT NULL
