-- Takes over up to $3 running permits of the type $1 from nodes whose grants have ended, for the node $2; returns how
-- many.
-- Guard: $4 is the number of the node's last request; the row of the type is locked before, so that no two nodes take
-- the same permits.
-- Index: the primary key of tocsin.permit.
WITH e AS MATERIALIZED (
  SELECT p.node_id,
         least(p.granted, greatest(0, $3 - (sum(p.granted) OVER (ORDER BY p.node_id) - p.granted)))::integer AS n
  FROM tocsin.permit p
  WHERE p.type_id = $1 AND p.limit_kind = 0 AND p.node_id <> $2 AND p.renewed_at + p.ttl < clock_timestamp()
    AND EXISTS (SELECT FROM tocsin.permit o
                WHERE o.type_id = $1 AND o.limit_kind = 0 AND o.node_id = $2 AND o.request_no = $4)),
u AS (
  UPDATE tocsin.permit p
  SET granted = p.granted + CASE WHEN p.node_id = $2 THEN m.n ELSE -m.n END
  FROM (SELECT e.node_id, e.n FROM e
        UNION ALL
        SELECT $2, sum(e.n)::integer FROM e HAVING sum(e.n) > 0) m
  WHERE p.type_id = $1 AND p.limit_kind = 0 AND p.node_id = m.node_id)
SELECT coalesce(sum(e.n), 0) FROM e
