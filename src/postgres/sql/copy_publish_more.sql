-- Adds tables to the publication of a move. {{tables}}: as in copy_publish.
-- Index: none is read.
ALTER PUBLICATION {{publication}} ADD TABLE {{tables}}
