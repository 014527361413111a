-- Makes the publication of a move. {{tables}}: published_rows of each table, separated by commas.
-- Index: none is read.
CREATE PUBLICATION {{publication}} FOR TABLE {{tables}} WITH (publish = 'insert, update, delete')
