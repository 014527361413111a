-- Drops the table {{table}} of a day of history.
-- Index: none is read. Hazard: of a table that is still attached, the drop would lock all of history.
DROP TABLE tocsin.{{table}}
