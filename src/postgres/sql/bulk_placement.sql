-- The placement, and whether a shard may be write-frozen now. In the control database.
-- Index: none; the shard map is one row, and moves are few.
SELECT {{placement}}, EXISTS (SELECT FROM tocsin.move v WHERE v.thaw_at IS NOT NULL)
