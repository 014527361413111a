-- The values of new jobs k at the time t.now, in the order of new_job_columns.
k.job_id, coalesce(k.at, t.now + k.in_us * interval '1 microsecond'),
greatest(coalesce(k.at, t.now + k.in_us * interval '1 microsecond'), t.now), t.now, t.now, k.type_id, k.shard,
k.max_attempts, k.biz_id, k.traceparent, k.attribute
