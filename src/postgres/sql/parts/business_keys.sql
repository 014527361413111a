-- Business keys: of one type, or of all where the type is NULL.
unnest($1::smallint[], $2::text[], $3::integer[]) WITH ORDINALITY k (shard, biz_id, type_id, ord)
