-- A row if one of the dead jobs $1 has a type that is there, or whose removal the control database has not decided.
-- Index: _id of history, and the primary key of biz_type.
SELECT
FROM unnest($1::bigint[]) k (job_id)
JOIN tocsin.job_history_dead h ON h.job_id = k.job_id
JOIN tocsin.biz_type t ON t.type_id = h.type_id
WHERE t.removed_at IS NULL OR t.removal_at IS NOT NULL
LIMIT 1
