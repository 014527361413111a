-- Tables of the subscription: copied, all.
-- Index: those of the catalog; one row per table of the subscription.
SELECT count(*) FILTER (WHERE r.srsubstate = 'r'), count(*)
FROM pg_subscription_rel r
JOIN pg_subscription s ON s.oid = r.srsubid
WHERE {{subscription_here}}
