-- Arrays of new jobs side by side. They are in the select list because a table function of many arrays materializes
-- each of them first, which took 20 % of the time of a create.
unnest($1::bigint[]) AS job_id, unnest($2::smallint[]) AS shard, unnest($3::integer[]) AS type_id,
unnest($4::timestamptz[]) AS at, unnest($5::bigint[]) AS in_us, unnest($6::smallint[]) AS max_attempts,
unnest($7::text[]) AS biz_id, unnest($8::text[]) AS traceparent, unnest($9::jsonb[]) AS attribute
