-- Drops the replication slots of a move that are not in use.
-- Index: none; one row per slot of the server.
SELECT pg_drop_replication_slot(slot_name)
FROM pg_replication_slots
WHERE NOT active AND (slot_name = $1 OR slot_name LIKE $2)
