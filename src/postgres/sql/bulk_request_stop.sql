-- Asks the node that runs the bulk operation $1 to stop.
-- Index: the primary key of tocsin.bulk.
UPDATE tocsin.bulk
SET is_stop_requested = true
WHERE bulk_id = $1::bigint AND state = 'running' AND NOT is_stop_requested
