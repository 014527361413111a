-- Whether there is a type with one of the names $1; $2: removed ones count.
-- Index: that of biz_type by name.
SELECT EXISTS (SELECT FROM tocsin.biz_type WHERE name = ANY ($1::text[]) AND (removed_at IS NULL OR $2::boolean))
