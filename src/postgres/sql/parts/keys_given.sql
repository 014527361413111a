-- The keys of create_keyed, with what their creates ask for.
unnest($1::bigint[], $2::smallint[], $3::integer[], $4::text[], $5::text[], $6::text[], $7::jsonb[], $8::integer[])
  WITH ORDINALITY k (job_id, shard, type_id, biz_id, key, requested_time, attribute, own_max_attempts, ord)
