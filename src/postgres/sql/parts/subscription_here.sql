-- The subscription {{subscription}} of this database.
subname = '{{subscription}}' AND subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())
