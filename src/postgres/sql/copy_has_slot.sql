-- The slot $1, if the server still has the log that it needs.
-- Index: none; one row per slot of the server.
SELECT FROM pg_replication_slots WHERE slot_name = $1 AND wal_status IS DISTINCT FROM 'lost'
