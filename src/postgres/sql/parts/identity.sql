-- The identity of the database that answers (DatabaseIdentity).
(SELECT system_identifier FROM pg_control_system()),
(SELECT oid::bigint FROM pg_database WHERE datname = current_database())
