-- The rows of the shard {{shard}} in a table of jobs.
{{table}} WHERE ((job_id & 1023) = {{shard}})
