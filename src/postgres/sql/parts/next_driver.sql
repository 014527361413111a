-- The number of a new driver of a move, after {{after}}. Larger than that of any driver of an earlier move, too: one that
-- was stopped for long may still write.
greatest({{after}} + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
