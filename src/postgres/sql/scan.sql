-- Reads the lanes that $1 to $6 name, a page each, and searches the shards and types $7 to $9 for other lanes that
-- have rows before $10, at most $11 of them. The search reads the index through while all of it has at most $12
-- bytes.
-- Rows: (number of the lane in $1, job, fire_at, is_exhausted) of a page; (-2, type * 1024 + shard, first fire_at)
-- for a lane that was found, without the time where the index was read through; (-3, lanes that the search stepped
-- over); with $13 (-1, a new transaction id, the time before); (0, the oldest transaction id in use, the clock): the clock
-- is read last, to be as fresh as possible when the reply arrives.
-- Index: _due (shard + 0, type_id, fire_at, job_id + 0). Hazard: the page goes by row comparison, so that thousands
-- of rows of one instant can be paged. It sees no row that commits behind it: the caller keeps a margin, and sweeps. The
-- id that a snapshot names as next (xmax) would not do: it is one more than the last that has ended, and transactions
-- with later ids may have been open for long.
WITH RECURSIVE m AS MATERIALIZED (
  SELECT CASE
    WHEN $12::bigint > 0 THEN
      {{due_bytes table = 0000}} + {{due_bytes table = 0001}} + {{due_bytes table = 0002}} + {{due_bytes table = 0003}}
      + {{due_bytes table = 0004}} + {{due_bytes table = 0005}} + {{due_bytes table = 0006}}
      + {{due_bytes table = 0007}} <= $12::bigint
    ELSE false
  END AS reads),
s AS (
  SELECT *
  FROM unnest($7::smallint[], $8::integer[], $9::integer[]) s (shard, first, last)),
w AS (
  SELECT w.shard, w.last, n.type_id, n.fire_at
  FROM (SELECT s.* FROM m JOIN s ON NOT m.reads) w (shard, first, last)
  CROSS JOIN LATERAL {{next_lane}}
  UNION ALL
  SELECT w.shard, w.last, n.type_id, n.fire_at
  FROM (SELECT v.shard, v.last, v.type_id + 1 AS first FROM w v WHERE v.type_id < v.last) w
  CROSS JOIN LATERAL {{next_lane}})
SELECT k.ord, j.job_id, j.fire_at, j.is_exhausted
FROM unnest($1::smallint[], $2::integer[], $3::timestamptz[], $4::bigint[], $5::timestamptz[], $6::integer[])
  WITH ORDINALITY k (shard, type_id, after, after_id, before, most, ord)
CROSS JOIN LATERAL (
  SELECT l.job_id, l.fire_at, l.status = 1 AND l.attempts >= l.max_attempts AS is_exhausted
  FROM tocsin.job_live l
  WHERE l.shard = k.shard AND l.shard + 0 = k.shard::integer
    AND l.type_id = k.type_id
    AND (l.fire_at, l.job_id + 0) > (k.after, k.after_id)
    AND l.fire_at < k.before
  ORDER BY l.fire_at, l.job_id + 0
  LIMIT k.most) j
UNION ALL (
  SELECT -2, w.type_id::bigint * 1024 + w.shard, w.fire_at, false
  FROM w
  WHERE w.fire_at < $10::timestamptz
  LIMIT $11::integer)
UNION ALL (
  SELECT -2, r.type_id::bigint * 1024 + s.shard, NULL::timestamptz, false
  FROM m
  JOIN s ON m.reads
  CROSS JOIN LATERAL (
    SELECT DISTINCT l.type_id
    FROM tocsin.job_live l
    WHERE l.shard = s.shard AND l.shard + 0 = s.shard::integer
      AND l.type_id >= s.first
      AND l.type_id <= s.last
      AND l.fire_at < $10::timestamptz) r
  LIMIT $11::integer)
UNION ALL
SELECT -3, (SELECT count(*) FROM w), NULL::timestamptz, false
FROM m
WHERE NOT m.reads
UNION ALL
SELECT -1, pg_current_xact_id()::text::bigint, statement_timestamp(), false
WHERE $13::boolean
UNION ALL
SELECT 0, pg_snapshot_xmin(pg_current_snapshot())::text::bigint, clock_timestamp(), false
