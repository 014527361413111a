-- Replaces the owners in the shard map. Guard: the version that the node has read, so one of several writers wins.
-- Index: none; the shard map is one row.
UPDATE tocsin.shard_map SET version = version + 1, owners = $2::bigint[] WHERE version = $1::bigint
