-- Names of live nodes that were not given the database $1.
-- Index: none; one row per node.
SELECT n.name
{{live_nodes}}
  AND n.state = 'active'
  AND NOT coalesce($1 = ANY (n.places), false)
ORDER BY 1
