-- Locks the row of the shard map. A bulk operation that starts and a move that freezes its shard both take this lock
-- before they look for each other. Index: none; one row.
SELECT FROM tocsin.shard_map FOR UPDATE
