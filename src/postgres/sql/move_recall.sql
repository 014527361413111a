-- Records again a move that the control database has lost and that source and target remember. The earlier driver had a
-- smaller number. The shard may be frozen.
-- Index: the primary key of tocsin.move; the shard map is one row.
INSERT INTO tocsin.move (shard, source, target, driver, state, thaw_at)
SELECT $1::integer, $2::smallint, $3::smallint, {{next_driver after = $4::bigint}},
       CASE p.places[$1::integer + 1] WHEN $2::smallint THEN 'copying' ELSE 'switched' END, {{thaw_lease}}
FROM tocsin.shard_map p
WHERE p.places[$1::integer + 1] IN ($2::smallint, $3::smallint)
ON CONFLICT DO NOTHING
