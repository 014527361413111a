-- The time {{at}} for the row j, but never before the deadline at which its attempts began: the clock may have been set
-- back since. What was made due before its deadline (run now) has a start before it.
greatest({{at}}, CASE WHEN j.started_at >= j.action_time THEN j.action_time END)
