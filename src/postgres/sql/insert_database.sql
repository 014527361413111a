-- Adds a database to the installation.
-- Index: none is read.
INSERT INTO tocsin.database (place, name, address, server, database_oid) VALUES ($1, $2, $3, $4, $5)
