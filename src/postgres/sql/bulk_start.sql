-- Records a bulk operation that the node $15 runs for $16 microseconds, unless it extends that (bulk_keep). Guard: the
-- placement is still $17, which was read before the jobs were counted, and no shard could be write-frozen then.
-- Index: none; the shard map is one row, and moves are few.
INSERT INTO tocsin.bulk AS b (action, filter, biz_id, type_id, from_time, to_time, death_reason, action_time, delay_us,
  spread_us, rate_per_s, reason, actor, matched, node_id, lease_until)
SELECT $1, $2::jsonb, $3, $4::integer, $5::timestamptz, $6::timestamptz, $7, $8::timestamptz, $9::bigint, $10::bigint,
       $11::double precision, $12, $13, $14::bigint, $15::bigint,
       clock_timestamp() + $16::bigint * interval '1 microsecond'
WHERE {{placement}} = $17
RETURNING {{bulk_columns}}
