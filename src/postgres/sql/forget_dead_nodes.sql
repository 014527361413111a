-- Deletes nodes that have been silent for an hour and own no shard.
-- Index: none; a table of nodes is small. Hazard: a node that the shard map names may still write.
DELETE FROM tocsin.node
WHERE heartbeat_at < clock_timestamp() - interval '1 hour'
  AND node_id <> ALL (SELECT unnest(owners) FROM tocsin.shard_map)
