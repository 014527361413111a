-- Writes the heartbeat of the node $1 and reads all members, and the shard map, unless its version is $8.
-- Members and map are of one snapshot: a map newer than the members would look wrong to this node, and it would replace
-- the map. Its own row is not in that snapshot, so it comes from RETURNING. A session is recognised by pid and start,
-- because pids are used again; a start that may not be seen proves nothing. A heartbeat need not survive a crash of the
-- database, as the next one comes in a second or two, so it does not wait for the disk.
-- Index: the primary key of tocsin.node. Hazard: an index on another column would be written with every heartbeat.
WITH t AS MATERIALIZED (SELECT clock_timestamp() AS now, set_config('synchronous_commit', 'off', true)),
     s AS MATERIALIZED (SELECT pid, backend_start FROM pg_stat_get_activity(pg_backend_pid())),
     own AS (
       INSERT INTO tocsin.node AS n
         (node_id, name, state, version, heartbeat_at, backend_pid, backend_start, places, scanned, map_version)
       SELECT $1, $2, $3, $4, t.now, s.pid, s.backend_start, $5::smallint[],
              ARRAY(SELECT t.now - age * interval '1 microsecond' FROM unnest($6::bigint[]) WITH ORDINALITY a (age, i)
                    ORDER BY i),
              nullif($7::bigint, -1) FROM t, s
       ON CONFLICT (node_id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at, state = excluded.state,
         backend_pid = excluded.backend_pid, backend_start = excluded.backend_start, places = excluded.places,
         scanned = excluded.scanned, map_version = excluded.map_version
       RETURNING n.*)
SELECT m.node_id, m.name, m.version, m.state = 'draining', m.heartbeat_at,
       greatest(0, extract(epoch FROM t.now - m.heartbeat_at) * 1000000)::bigint,
       m.places, ARRAY(SELECT CASE WHEN at IS NULL THEN -1
                              ELSE greatest(0, extract(epoch FROM t.now - at) * 1000000)::bigint END
                       FROM unnest(m.scanned) WITH ORDINALITY a (at, i) ORDER BY i),
       EXISTS (SELECT FROM pg_stat_get_activity(m.backend_pid) a WHERE coalesce(a.backend_start = m.backend_start, true)),
       p.version, p.owners, p.places
FROM t CROSS JOIN (SELECT * FROM own UNION ALL SELECT * FROM tocsin.node WHERE node_id <> $1) m
     LEFT JOIN tocsin.shard_map p ON m.node_id = $1 AND p.version <> $8::bigint
ORDER BY m.node_id
