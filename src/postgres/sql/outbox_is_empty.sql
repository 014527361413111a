-- Whether no entry waits.
-- Index: outbox_due.
SELECT NOT EXISTS (SELECT FROM tocsin.outbox o WHERE o.settled_at IS NULL)
