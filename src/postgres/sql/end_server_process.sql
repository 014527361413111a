-- Ends the server process $1 that was started at $2, if there still is one; returns how many did not end within half a
-- second.
-- Index: none; one process.
SELECT count(*) FILTER (WHERE NOT pg_terminate_backend(pid, 500))
FROM pg_stat_get_activity($1::integer)
WHERE backend_start = $2::timestamptz
