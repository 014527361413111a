-- Drops the subscription of a move.
-- Index: none is read. Hazard: with a slot or a connection it drops slots at the source from inside its transaction, and
-- might wait for ever for a slot whose creation waits for all transactions.
DROP SUBSCRIPTION {{subscription}}
