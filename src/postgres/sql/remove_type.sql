-- Marks the type $1 as removed. REQUIRES: the row is locked, and the type has no live jobs.
-- Index: the primary key of biz_type.
UPDATE tocsin.biz_type t
SET removed_at = clock_timestamp(), paused = false, gmt_modified = {{type_modified}}
WHERE type_id = $1
