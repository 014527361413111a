-- A row if the type $1 is removed here, and the control database has not decided yet.
-- Index: the primary key of biz_type.
SELECT FROM tocsin.biz_type
WHERE type_id = $1::integer AND removed_at IS NOT NULL AND removal_at IS NOT NULL
