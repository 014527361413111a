-- The connection string of the subscription.
-- Index: that of pg_subscription by database and name.
SELECT subconninfo FROM pg_subscription WHERE {{subscription_here}}
