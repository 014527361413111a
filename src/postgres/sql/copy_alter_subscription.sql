-- Changes the subscription of a move. {{change}}: DISABLE, REFRESH PUBLICATION or SET (slot_name = NONE).
-- Index: none is read.
ALTER SUBSCRIPTION {{subscription}} {{change}}
