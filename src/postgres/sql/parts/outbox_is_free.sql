-- An entry o that the relay $2 may take: not settled, and not claimed lately (or after now: the clock was set back).
-- s.is_mine: its shard is this node's, so the relay that claimed it may have died, or have lost the shard.
o.settled_at IS NULL
AND (o.claimed_by IS NULL OR o.claimed_at > clock_timestamp()
     OR o.claimed_at < clock_timestamp()
                       - CASE WHEN o.claimed_by = $2::bigint THEN interval '1 second'
                              WHEN s.is_mine THEN interval '3 seconds'
                              ELSE interval '10 seconds' END)
