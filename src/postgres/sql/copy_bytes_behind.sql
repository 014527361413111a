-- Bytes of log up to the position $1 that the subscriber of the slot $2 has not confirmed; no row: the slot is gone, or
-- the server has removed log that it needs.
-- Index: none; one row per slot of the server.
SELECT greatest(0, pg_wal_lsn_diff($1::pg_lsn, confirmed_flush_lsn))::bigint
FROM pg_replication_slots
WHERE slot_name = $2 AND wal_status IS DISTINCT FROM 'lost'
