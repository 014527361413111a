-- The connection string of the subscription, and whether it is enabled.
-- Index: that of pg_subscription by database and name.
SELECT subconninfo, subenabled FROM pg_subscription WHERE {{subscription_here}}
