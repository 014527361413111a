-- Ends the server process of the row of activity; true if it has not ended within {{ms}} milliseconds. A process that
-- waits in a commit is left alone: the commit has happened here, and the end of the wait for a synchronous standby would
-- show it to others although the standby lacks it. One that waits for the disk would not end before either, and then not
-- wait for the standby. The names of these waits differ in case between versions of PostgreSQL.
CASE WHEN upper(wait_event) IN ('SYNCREP', 'WALSYNC', 'WALWRITE') THEN true
     ELSE NOT pg_terminate_backend(pid, {{ms}}) END
