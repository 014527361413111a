-- Begins the removal of the type $1. REQUIRES: the row is locked.
-- Index: the primary key of biz_type.
UPDATE tocsin.biz_type t
SET removal_at = greatest(clock_timestamp(), t.removal_at + interval '1 microsecond')
WHERE type_id = $1::integer
RETURNING removal_at
