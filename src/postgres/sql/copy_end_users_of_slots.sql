-- Ends the sessions that use the replication slots of a move, or make them; returns how many did not end within five
-- seconds.
-- Index: none; one row per session of the server.
SELECT count(*) FILTER (WHERE NOT pg_terminate_backend(pid, 5000))
FROM pg_stat_activity
WHERE pid IN (SELECT active_pid FROM pg_replication_slots WHERE slot_name = $1 OR slot_name LIKE $2)
   OR backend_type = 'walsender' AND application_name LIKE $2
