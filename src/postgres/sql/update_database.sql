-- Records a database anew.
-- Index: none; one row per database.
UPDATE tocsin.database SET address = $2, server = $3, database_oid = $4 WHERE place = $1
