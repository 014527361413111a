-- Raises the sequence of ids where it is behind. Does not wait for synchronous standbys, as reserve_ids.sql: other creates
-- would wait for the lock of this commit.
-- Index: none; tocsin.raise_ids() reads the ends of indexes.
SELECT set_config('synchronous_commit', 'local', true), tocsin.raise_ids()
