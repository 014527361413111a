-- Gives up (55P03) when a row stays locked for 50 ms.
s AS MATERIALIZED (SELECT set_config('lock_timeout', '50ms', true))
