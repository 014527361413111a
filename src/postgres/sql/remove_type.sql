-- Marks the type $1 as removed; $3: it is a copy, which keeps its version, and its removal_at until the control database
-- has decided (mirror_type). Guard: its removal $2 is the one that began last, and with $4 that is still its version; no
-- transaction creates jobs of it, see tocsin.takes_jobs. REQUIRES: it has no live jobs, and the row is locked, see
-- begin_removal.
-- Index: the primary key of biz_type.
UPDATE tocsin.biz_type t
SET removed_at = clock_timestamp(), removal_at = CASE WHEN $3::boolean THEN t.removal_at END, paused = false,
    gmt_modified = CASE WHEN $3::boolean THEN t.gmt_modified ELSE {{type_modified}} END
WHERE type_id = $1::integer AND removal_at = $2::timestamptz AND ($4::timestamptz IS NULL OR gmt_modified = $4)
