-- The node $2 extends its lease of the bulk operation $1. Guard: it still runs, and here.
-- Index: the primary key of tocsin.bulk.
UPDATE tocsin.bulk b
SET changed = $3::bigint, lease_until = clock_timestamp() + $4::bigint * interval '1 microsecond'
WHERE b.bulk_id = $1::bigint AND b.node_id = $2::bigint AND b.state = 'running'
RETURNING {{bulk_columns}}
