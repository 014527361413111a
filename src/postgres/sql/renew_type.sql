-- Makes the type $1 newer than its copies, and ends its removal, if one has begun.
-- Index: that of biz_type by name.
UPDATE tocsin.biz_type t
SET gmt_modified = {{type_modified}}, removal_at = NULL
WHERE name = $1 AND removed_at IS NULL
