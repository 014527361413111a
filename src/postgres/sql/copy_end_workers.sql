-- Ends the workers of the subscription; a row per worker found.
-- Index: none; one row per worker of the server.
SELECT pg_terminate_backend(s.pid, 1000)
FROM pg_stat_subscription s
WHERE s.pid IS NOT NULL AND s.subid = (SELECT oid FROM pg_subscription WHERE {{subscription_here}})
