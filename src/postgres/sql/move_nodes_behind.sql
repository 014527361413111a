-- Names of live nodes that work with a shard map older than the version $1. A draining one still ends its attempts.
-- Index: none; one row per node.
SELECT n.name
{{live_nodes}}
  AND coalesce(n.map_version, -1) < $1
ORDER BY 1
