-- Pauses ($2) the type $1 until $3, or for good where that is NULL; or resumes it.
-- Index: that of biz_type by name.
UPDATE tocsin.biz_type t
SET paused = $2::boolean, paused_until = $3::timestamptz, gmt_modified = {{type_modified}}
WHERE name = $1 AND removed_at IS NULL
RETURNING {{type_columns}}
