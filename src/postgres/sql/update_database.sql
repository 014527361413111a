-- Records a database anew.
UPDATE tocsin.database SET address = $2, server = $3, database_oid = $4 WHERE place = $1
