-- The settings of a type, from the row that was to be inserted.
handler = excluded.handler,
    ttr_ms = excluded.ttr_ms,
    max_attempts = excluded.max_attempts,
    backoff = excluded.backoff,
    max_running = excluded.max_running,
    rate_per_s = excluded.rate_per_s,
    catch_up = excluded.catch_up,
    slo = excluded.slo
