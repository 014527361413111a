-- The jobs of change_pending.
(SELECT unnest($1::smallint[]) AS shard, unnest($2::bigint[]) AS job_id, unnest($3::timestamptz[]) AS at,
        unnest($4::bigint[]) AS in_us) k
