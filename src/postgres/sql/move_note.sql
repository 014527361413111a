-- Records a move at its source or target. Guard: no later driver, and the same source and target.
-- Index: the primary key of tocsin.move.
INSERT INTO tocsin.move AS m (shard, source, target, driver)
VALUES ($1, $2, $3, $4)
ON CONFLICT (shard) DO UPDATE SET driver = excluded.driver
WHERE m.driver <= excluded.driver AND m.source = excluded.source AND m.target = excluded.target
