-- Calls a function of the migration for the shard {{shard}} of a move: freeze_shard, thaw_shard, open_shard or
-- take_counts.
-- Index: as the function says.
SELECT tocsin.{{function}}({{shard}}::smallint)
