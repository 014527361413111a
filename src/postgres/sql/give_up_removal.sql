-- Ends the removal $2 of the type $1, which stays. Guard: no other removal has begun, and this one was not committed
-- without an answer.
-- Index: the primary key of biz_type.
UPDATE tocsin.biz_type
SET removal_at = NULL
WHERE type_id = $1::integer AND removal_at = $2::timestamptz AND removed_at IS NULL
