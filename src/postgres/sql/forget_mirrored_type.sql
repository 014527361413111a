-- Deletes copies of types whose name has come back with another id: a failover of the control database lost the type, and
-- it was created again.
-- Guard: the copy is older.
-- Index: that of biz_type by name.
DELETE FROM tocsin.biz_type t USING unnest($1::text[], $2::integer[], $3::timestamptz[]) k (name, type_id, gmt_modified)
WHERE t.name = k.name AND t.type_id <> k.type_id AND t.gmt_modified < k.gmt_modified
