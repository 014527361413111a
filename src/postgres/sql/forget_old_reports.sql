-- Deletes old report rows or audit records. {{rows}}: a table, WHERE and the column of its time.
-- Index: that of the time, where it is the first column of one; the other tables have some rows per type and day.
DELETE FROM tocsin.{{rows}} < statement_timestamp() - {{report_age}}
