-- Gives up (55P03) when a key stays held for 5 ms, so that parts of a batch can be tried one after the other.
s AS MATERIALIZED (SELECT set_config('lock_timeout', '5ms', true))
