-- Entries that wait, entries that were refused, and the age of the oldest waiting one in microseconds.
-- Index: outbox_due holds the waiting entries and outbox_settled those with an answer, both are read whole. Hazard: it
-- costs what the backlog of the outbox costs.
SELECT w.n, (SELECT count(*) FROM tocsin.outbox WHERE settled_at IS NOT NULL AND error IS NOT NULL),
       coalesce(extract(epoch FROM clock_timestamp() - w.since), 0) * 1000000
FROM (SELECT count(*) AS n, min(gmt_create) AS since FROM tocsin.outbox WHERE settled_at IS NULL) w
