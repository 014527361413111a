-- An entry o that the relay $2 may take: not settled, and no other relay claimed it lately (or after now: the clock was
-- set back).
o.settled_at IS NULL
AND (o.claimed_by IS NULL OR o.claimed_at > clock_timestamp()
     OR o.claimed_at < clock_timestamp()
                       - CASE WHEN o.claimed_by = $2::bigint THEN interval '1 second' ELSE interval '10 seconds' END)
