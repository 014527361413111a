-- Columns of a move.
shard, source, target, driver, state, thaw_at IS NOT NULL, coalesce(thaw_at < clock_timestamp(), false)
