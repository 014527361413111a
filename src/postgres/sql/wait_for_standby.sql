-- Commits an empty logical message: the commit returns when the synchronous standbys, if there are any, have it and all
-- that was committed before. A transaction that writes nothing would wait for none.
-- Index: none.
SELECT set_config('synchronous_commit', 'on', true), pg_logical_emit_message(true, 'tocsin', '')
