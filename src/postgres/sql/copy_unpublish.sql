-- Drops the publication of a move.
-- Index: none is read.
DROP PUBLICATION IF EXISTS {{publication}}
