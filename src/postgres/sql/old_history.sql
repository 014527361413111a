-- The tables of history with the status $1 that are older than $2 days: name, whether attached, whether a detach was
-- interrupted, day, whether it has rows, and how many later days, up to today, have rows: later ones come of a clock that
-- was ahead.
-- Hazard: tables are found by name, for one that was detached is in no other list.
-- Index: that of pg_class by name; one row per day and status of history, each of which is opened for its size.
WITH leaf AS MATERIALIZED (
  SELECT c.oid, c.relname, to_date(right(c.relname, 8), 'YYYYMMDD') AS day, pg_relation_size(c.oid) > 0 AS is_used
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = 'tocsin'
    AND c.relkind = 'r'
    AND c.relname ~ '^job_history_(done|cancelled|dead)_[0-9]{8}$')
SELECT c.relname, i.inhrelid IS NOT NULL, coalesce(i.inhdetachpending, false), c.day - date '1970-01-01', c.is_used,
       (SELECT count(DISTINCT l.day) FROM leaf l WHERE l.is_used AND l.day > c.day
          AND l.day <= (statement_timestamp() AT TIME ZONE 'UTC')::date)
FROM leaf c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
WHERE c.relname LIKE 'job\_history\_' || $1 || '\_%'
  AND c.day < (statement_timestamp() AT TIME ZONE 'UTC')::date - $2::integer
ORDER BY 1
