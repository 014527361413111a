-- The shards that live in this database (NULL: all); the shards that move from or to it, and the other database of each
-- move.
-- Index: none; tocsin.place is one row, tocsin.move has one per move.
SELECT p.shards, m.shards, m.partners
FROM tocsin.place p
CROSS JOIN LATERAL (
  SELECT coalesce(array_agg(m.shard ORDER BY m.shard), '{}') AS shards,
         coalesce(array_agg(CASE m.source WHEN p.place THEN m.target ELSE m.source END ORDER BY m.shard), '{}') AS partners
  FROM tocsin.move m
  WHERE p.place IN (m.source, m.target)) m
