-- Deletes bulk operations that ended long ago.
-- Index: none; one row per bulk operation.
DELETE FROM tocsin.bulk WHERE finished_at < clock_timestamp() - {{report_age}}
