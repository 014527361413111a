-- The identity of the database that answers.
-- Index: that of pg_database by name.
SELECT {{identity}}
