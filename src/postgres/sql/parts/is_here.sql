-- Shard {{shard}} lives in this database. While a shard moves, its rows are copied into a database where it does not live
-- yet: no verb may change them there. The database would refuse a claim or a retry of them (TC001), and with it all
-- that the statement does for other shards; so statements leave such rows out. Of a lane it is asked once.
coalesce({{shard}} = ANY ((SELECT p.shards FROM tocsin.place p)::smallint[]), true)
