-- Copies a type from the control database. Guard: the copy is older.
-- Index: the primary key.
INSERT INTO tocsin.biz_type AS t (type_id, name, handler, ttr_ms, max_attempts, backoff, max_running, rate_per_s,
  catch_up, paused, paused_until, removed_at, gmt_create, gmt_modified, slo)
OVERRIDING SYSTEM VALUE
VALUES ($1, $2, $3::jsonb, $4, $5, $6::jsonb, $7, $8, $9::jsonb, $10, $11::timestamptz,
        CASE WHEN $12 THEN clock_timestamp() END, $13::timestamptz, $14::timestamptz, $15::jsonb)
ON CONFLICT (type_id) DO UPDATE
SET {{type_changed}},
    paused = excluded.paused,
    paused_until = excluded.paused_until,
    removal_at = NULL,
    removed_at = excluded.removed_at,
    gmt_create = excluded.gmt_create,
    gmt_modified = excluded.gmt_modified
WHERE t.gmt_modified < excluded.gmt_modified
