-- What nodes tell with their heartbeats, and the end of a pause whose driver is gone.

-- scanned_at is no longer written: a node scans each database by itself. It stays for nodes of the version before that still run.
ALTER TABLE tocsin.node
  ADD COLUMN places      smallint[],     -- the databases that it was given; NULL: a node of an older version
  ADD COLUMN scanned     timestamptz[],  -- in each of them: its last scan of all its shards there; NULL: none yet
  ADD COLUMN map_version bigint;         -- of the shard map that it works with; NULL: none yet

-- When the shard must be moving on: before it freezes a shard its driver says so here, and again while it stands still. Whoever finds it
-- past may become the driver, end the pause, and leave the rest to the next command. NULL: the shard does not stand still. Home's counts.
ALTER TABLE tocsin.move
  ADD COLUMN thaw_at    timestamptz,
  ADD COLUMN is_rescued boolean NOT NULL DEFAULT false;  -- by a node, since a command took it: that command may take it again
UPDATE tocsin.move SET thaw_at = clock_timestamp();
