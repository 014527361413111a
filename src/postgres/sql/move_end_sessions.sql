-- Ends other sessions of the application $1 in this database; returns how many did not end within five seconds. As in
-- end_server_process.sql, the wait of a commit for a synchronous standby is not ended.
-- Index: none; one row per session of the server.
SELECT count(*) FILTER (WHERE CASE WHEN wait_event = 'SyncRep' THEN true ELSE NOT pg_terminate_backend(pid, 5000) END)
FROM pg_stat_activity
WHERE application_name = $1 AND datname = current_database() AND pid <> pg_backend_pid()
