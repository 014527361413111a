-- A text that changes whenever a type does: each change moves its gmt_modified forward.
-- Index: none; the table is small.
SELECT concat_ws(' ', count(*), sum(hashint8extended((extract(epoch FROM gmt_modified) * 1000000)::bigint, type_id)))
FROM tocsin.biz_type
