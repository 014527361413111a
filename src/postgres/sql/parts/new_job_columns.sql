-- Columns that every new job has.
job_id, action_time, fire_at, gmt_create, gmt_modified, type_id, shard, max_attempts, biz_id, traceparent, attribute
