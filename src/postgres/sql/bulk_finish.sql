-- Ends the bulk operation $1. Guard: it still runs, and on the node $2.
-- Index: the primary key of tocsin.bulk.
UPDATE tocsin.bulk
SET state = $3, changed = $4::bigint, error = $5, finished_at = clock_timestamp()
WHERE bulk_id = $1::bigint AND node_id = $2::bigint AND state = 'running'
