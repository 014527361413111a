-- Creates the tables of history of today and the next seven days.
SELECT tocsin.ensure_history(
  (statement_timestamp() AT TIME ZONE 'UTC')::date, (statement_timestamp() AT TIME ZONE 'UTC')::date + 7)
