-- See tocsin.renew_permits in the baseline migration.
-- Index: the primary key of tocsin.permit.
SELECT * FROM tocsin.renew_permits($1, $2, $3, $4::integer[], $5::smallint[], $6::integer[], $7::integer[], $8::integer[],
                                   $9::integer[], $10::bigint[])
