-- Ends other sessions of the application $1 in this database; returns how many did not end within five seconds.
-- Index: none; one row per session of the server.
SELECT count(*) FILTER (WHERE {{outlives_end ms = 5000}})
FROM pg_stat_activity
WHERE application_name = $1 AND datname = current_database() AND pid <> pg_backend_pid()
