-- The shard of the job j lives in this database. While a shard moves, its rows are copied into a database where it does
-- not live yet: no verb may change them there.
coalesce(j.shard = ANY ((SELECT p.shards FROM tocsin.place p)::smallint[]), true)
