-- Creates the history tables of kind $1 (done, dead or cancelled) of today and the next two days. Every statement about a
-- key or an id opens them, although the later ones are empty: more days would cost each of these calls more.
-- Index: none is read.
SELECT tocsin.ensure_history(
  (statement_timestamp() AT TIME ZONE 'UTC')::date, (statement_timestamp() AT TIME ZONE 'UTC')::date + 2,
  ARRAY[$1::text])
