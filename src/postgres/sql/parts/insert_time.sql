-- One clock reading for the whole call, after the transaction has its id: rows never land below the xmin watermark of a
-- scan, however long the insert waits for a key or a table.
CASE WHEN pg_current_xact_id() IS NOT NULL THEN clock_timestamp() END AS now
