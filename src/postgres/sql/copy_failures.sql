-- Errors of the subscription so far.
-- Index: none; one row per subscription of the server.
SELECT coalesce(sum(apply_error_count + sync_error_count), 0)::bigint
FROM pg_stat_subscription_stats
WHERE subid = (SELECT oid FROM pg_subscription WHERE {{subscription_here}})
