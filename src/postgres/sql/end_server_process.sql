-- Ends the server process $1 that was started at $2, if there still is one. Returns how many wait for a synchronous
-- standby, and how many have not ended within half a second.
-- Index: none; one process.
SELECT count(*) FILTER (WHERE wait_event = 'SyncRep'), count(*) FILTER (WHERE {{outlives_end ms = 500}})
FROM pg_stat_get_activity($1::integer)
WHERE backend_start = $2::timestamptz
