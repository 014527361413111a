-- Where the shards live, and when a move changed last: a text that differs once a shard was frozen or has moved.
(SELECT m.version || ' ' || coalesce((SELECT max(v.changed_at) FROM tocsin.move v)::text, '') FROM tocsin.shard_map m)
