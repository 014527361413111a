-- Workers for logical replication on this server: the maximum, whether all are taken, how many this subscription has,
-- and the names of all subscriptions that have one.
-- Index: none; one row per subscription of the server.
SELECT current_setting('max_logical_replication_workers'),
       count(s.pid) >= current_setting('max_logical_replication_workers')::integer,
       count(s.pid) FILTER (WHERE s.subid = (SELECT oid FROM pg_subscription WHERE {{subscription_here}})),
       string_agg(DISTINCT s.subname, ', ') FILTER (WHERE s.pid IS NOT NULL)
FROM pg_stat_subscription s
