-- Waits while a removal decides about the type of one of the dead jobs $1 (it has the type's row locked then), and keeps
-- it from doing so until the transaction ends. Index: _id of history, and the primary key of biz_type.
SELECT
FROM tocsin.biz_type t
WHERE t.removal_at IS NOT NULL
  AND t.type_id IN (SELECT h.type_id FROM tocsin.job_history_dead h WHERE h.job_id = ANY ($1::bigint[]))
FOR KEY SHARE OF t
