-- LIKE pattern of the slots that copy tables for the subscription, named as PostgreSQL names them.
-- Index: that of pg_subscription by database and name.
SELECT format('pg\_%s\_sync\_%%\_%s', oid, (SELECT system_identifier FROM pg_control_system()))
FROM pg_subscription
WHERE {{subscription_here}}
