-- Until when reports are old: rows before this time may be deleted. No row: none may.
-- The clock alone may be years ahead, so 400 later days must have counts, too. Such a clock adds one of these for each
-- real day.
-- Index: the primary key, once for each day: a day has a row for every type.
WITH RECURSIVE d (slot, n) AS (
  SELECT (SELECT max(r.slot) FROM tocsin.report_slot r WHERE r.grain = 3), 1
  UNION ALL
  SELECT (SELECT max(r.slot) FROM tocsin.report_slot r WHERE r.grain = 3 AND r.slot < d.slot), d.n + 1
  FROM d
  WHERE d.n <= 400 AND d.slot IS NOT NULL)
SELECT least(d.slot, statement_timestamp() - {{report_age}})
FROM d
WHERE d.n = 401 AND d.slot IS NOT NULL
