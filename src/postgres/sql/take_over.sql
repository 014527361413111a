-- See tocsin.take_over in the baseline migration.
-- Index: the primary key of tocsin.relayed; of jobs _id and _key for conflicts, and _biz of the entry's business key.
SELECT * FROM tocsin.take_over($1::smallint, $2::timestamptz, $3::bigint[], $4::integer[], $5::smallint[], $6::boolean[],
                               $7::timestamptz[], $8::timestamptz[], $9::timestamptz[], $10::timestamptz[],
                               $11::text[], $12::text[], $13::bigint[], $14::text[])
