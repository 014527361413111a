-- The shards that live in this database; NULL: all.
-- Index: none; tocsin.place is one row.
SELECT p.shards
FROM tocsin.place p
