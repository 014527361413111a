-- How many microseconds the valid ones of the leases $1, $2, $3 still last, by ordinal; 0: unknown, because the shard
-- does not live here (it is moving). No row: the lease is over.
-- Index: _id.
SELECT k.ord, coalesce(ceil(extract(epoch FROM j.fire_at - clock_timestamp()) * 1000000), 0)::bigint
{{valid_leases}}
