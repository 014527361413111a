-- Ends the server process $1 that was started at $2, if there still is one. Returns how many wait for a synchronous
-- standby, and how many others did not end within half a second. A process that waits in a commit is left alone: the
-- commit has happened here, and the end of the wait would show it to others although the standby lacks it. One that waits
-- for the disk would not end before either, and then not wait for the standby.
-- Index: none; one process.
SELECT count(*) FILTER (WHERE wait_event = 'SyncRep'),
       count(*) FILTER (WHERE CASE WHEN wait_event = 'SyncRep' THEN false
                                   WHEN wait_event IN ('WALSync', 'WALWrite') THEN true
                                   ELSE NOT pg_terminate_backend(pid, 500) END)
FROM pg_stat_get_activity($1::integer)
WHERE backend_start = $2::timestamptz
