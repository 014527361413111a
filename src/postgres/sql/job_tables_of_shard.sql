-- The tables that hold rows of the shard $1: its live table, the days of history, and tocsin.relayed.
-- Index: that of pg_inherits by parent; a row per day and status of history.
SELECT format('tocsin.job_live_%s', lpad(($1::integer % 8)::text, 4, '0'))
UNION ALL
(SELECT p.relid::regclass::text
 FROM pg_partition_tree('tocsin.job_history') p
 WHERE p.isleaf AND p.level > 1
 ORDER BY 1)
UNION ALL
SELECT 'tocsin.relayed'
