-- The connection string of the subscription.
SELECT subconninfo FROM pg_subscription WHERE {{subscription_here}}
