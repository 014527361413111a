-- Makes the type $1 newer than its copies.
-- Index: that of biz_type by name.
UPDATE tocsin.biz_type t
SET gmt_modified = {{type_modified}}
WHERE name = $1 AND removed_at IS NULL
