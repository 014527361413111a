-- Tables of the subscription: copied, all.
SELECT count(*) FILTER (WHERE r.srsubstate = 'r'), count(*)
FROM pg_subscription_rel r
JOIN pg_subscription s ON s.oid = r.srsubid
WHERE {{subscription_here}}
