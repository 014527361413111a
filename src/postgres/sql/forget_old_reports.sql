-- Deletes report rows, audit records or ended bulk operations from before $1. {{rows}}: a table, WHERE and the column of its time.
-- Index: that of the time, where it is the first column of one; the other tables have some rows per type and day,
-- or one per bulk operation.
DELETE FROM tocsin.{{rows}} < $1::timestamptz
