-- The types whose removal is decided. A copy with both times is removed here, and may come back.
-- Index: none; all types.
SELECT type_id
FROM tocsin.biz_type
WHERE removed_at IS NOT NULL AND removal_at IS NULL
