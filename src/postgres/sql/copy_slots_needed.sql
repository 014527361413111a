-- Slots at the source that the subscription still needs to copy tables, named as PostgreSQL names them.
-- Index: those of the catalog; one row per table of the subscription.
SELECT format('pg_%s_sync_%s_%s', s.oid, r.srrelid, (SELECT system_identifier FROM pg_control_system()))
FROM pg_subscription_rel r
JOIN pg_subscription s ON s.oid = r.srsubid
WHERE {{subscription_here}} AND r.srsubstate = 'f'
