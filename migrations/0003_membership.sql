-- Who scans which shard. A node's row says when it was last heard of; the one row of shard_map says who owns what.

ALTER TABLE tocsin.node
  ADD COLUMN scanned_at    timestamptz,  -- its last scan of all its shards; NULL: none yet
  ADD COLUMN backend_pid   integer,      -- of the session that writes the heartbeat: when it is gone, so may be the node
  ADD COLUMN backend_start timestamptz;

-- One row, replaced as a whole: whoever writes names the version that it has read, so that of several nodes that notice the same
-- change one wins, and the others read what it wrote.
CREATE TABLE tocsin.shard_map (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  version bigint NOT NULL,
  owners  bigint[] NOT NULL  -- node_id by shard, from shard 0 on; 0: nobody
);
INSERT INTO tocsin.shard_map (version, owners) VALUES (0, '{}');
