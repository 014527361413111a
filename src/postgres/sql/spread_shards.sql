-- Places every shard. Guard: only while no shard is placed.
UPDATE tocsin.shard_map SET version = version + 1, places = $1::smallint[] WHERE places = '{}'
