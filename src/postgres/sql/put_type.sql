-- Creates a type, changes it, or brings a removed one back. is_new: created or brought back. Guard: with $10 only that
-- version is changed.
-- Index: the unique name.
INSERT INTO tocsin.biz_type AS t (name, handler, ttr_ms, max_attempts, backoff, max_running, rate_per_s, catch_up, slo)
SELECT $1, $2::jsonb, $3::bigint, $4::smallint, $5::jsonb, $6::integer, $7::double precision, $8::jsonb, $9::jsonb
WHERE $10::timestamptz IS NULL OR EXISTS (SELECT FROM tocsin.biz_type WHERE name = $1 AND gmt_modified = $10)
ON CONFLICT (name) DO UPDATE
SET {{type_changed}},
    gmt_modified = {{type_modified}},
    removal_at = NULL,
    removed_at = NULL,
    gmt_create = CASE WHEN t.removed_at IS NULL THEN t.gmt_create ELSE statement_timestamp() END
WHERE $10::timestamptz IS NULL OR (t.gmt_modified = $10 AND t.removed_at IS NULL)
RETURNING {{type_columns}}, t.xmax = 0 OR t.gmt_create = statement_timestamp() AS is_new
