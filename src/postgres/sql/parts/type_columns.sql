-- Columns of a type, in the order in which type_from() reads them.
type_id, name, handler, ttr_ms, max_attempts, backoff, max_running, rate_per_s, catch_up, slo, paused, paused_until,
removed_at, gmt_create, gmt_modified
