-- Begins the removal of the type $1. REQUIRES: the row is locked FOR UPDATE, here and in remove_type: only then a
-- transaction with an older snapshot fails when it locks the row FOR KEY SHARE.
-- Index: the primary key of biz_type.
UPDATE tocsin.biz_type t
SET removal_at = greatest(clock_timestamp(), t.removal_at + interval '1 microsecond')
WHERE type_id = $1::integer
RETURNING removal_at
