-- Ends the bulk operation $1 in this database: no later batch finds anything left to do.
-- Index: the primary key. Hazard: waits for a batch that holds the row.
INSERT INTO tocsin.bulk_progress AS p (bulk_id, is_done)
VALUES ($1::bigint, true)
ON CONFLICT (bulk_id) DO UPDATE
SET is_done = true
RETURNING p.changed
