-- Draws $1 numbers for ids. Does not wait for synchronous standbys, although the sequence is logged: the create that
-- uses the numbers waits, and its commit comes later in the log.
-- Index: none.
WITH s AS MATERIALIZED (SELECT set_config('synchronous_commit', 'local', true))
SELECT nextval('tocsin.job_seq')
FROM s, generate_series(1, $1::integer)
