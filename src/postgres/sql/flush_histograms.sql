-- Adds the histograms of a node to the tables of reports: $1 the node, $2 the number of its flush, then arrays: kind (0
-- lateness, else the duration of attempts with that outcome), slot, type_id, n, missed, max_ms, buckets. Returns 0 when
-- the flush was written before: one whose answer was lost finds its number taken and adds nothing. The percentiles may
-- lie above max_ms by the width of a bucket; the views cut them.
-- Index: the primary keys. Hazard: rows are written in the order of their keys, so that nodes cannot deadlock.
WITH g AS (
  INSERT INTO tocsin.report_flush AS r (node_id, seq)
  VALUES ($1::bigint, $2::bigint)
  ON CONFLICT (node_id) DO UPDATE
  SET seq = excluded.seq,
      flushed_at = excluded.flushed_at
  WHERE r.seq < excluded.seq
  RETURNING node_id),
e AS MATERIALIZED (
  SELECT k.kind, w.grain, date_bin(w.width, k.slot, '2000-01-01 00:00:00+00') AS slot, k.type_id, sum(k.n) AS n,
         sum(k.missed) AS missed, max(k.max_ms) AS max_ms,
         tocsin.merge_histograms(tocsin.histogram_concat(k.buckets::bigint[]), '{}') AS buckets
  FROM g,
       unnest($3::smallint[], $4::timestamptz[], $5::integer[], $6::bigint[], $7::bigint[], $8::double precision[],
              $9::text[])
         k (kind, slot, type_id, n, missed, max_ms, buckets),
       (VALUES (1::smallint, interval '15 minutes'), (2, '1 hour'), (3, '1 day')) w (grain, width)
  WHERE k.kind = 0 OR w.grain = 2
  GROUP BY 1, 2, 3, 4),
h AS (
  INSERT INTO tocsin.report_histogram AS r
  SELECT kind, grain, slot, type_id, buckets
  FROM e
  ORDER BY 1, 2, 3, 4
  ON CONFLICT (kind, grain, slot, type_id) DO UPDATE
  SET buckets = tocsin.merge_histograms(r.buckets, excluded.buckets)
  RETURNING *),
q AS MATERIALIZED (
  SELECT e.*, tocsin.histogram_quantiles(h.buckets) AS p
  FROM h
  JOIN e USING (kind, grain, slot, type_id)),
s AS (
  INSERT INTO tocsin.report_slot AS r (grain, slot, type_id, started, missed, p50_ms, p90_ms, p99_ms, max_ms)
  SELECT grain, slot, type_id, n, missed, p[1], p[2], p[3], max_ms
  FROM q
  WHERE kind = 0
  ORDER BY 1, 2, 3
  ON CONFLICT (grain, slot, type_id) DO UPDATE
  SET version = r.version + 1,
      started = r.started + excluded.started,
      missed = r.missed + excluded.missed,
      max_ms = greatest(r.max_ms, excluded.max_ms),
      p50_ms = excluded.p50_ms,
      p90_ms = excluded.p90_ms,
      p99_ms = excluded.p99_ms),
d AS (
  INSERT INTO tocsin.report_duration_hour AS r
  SELECT slot, type_id, kind, n, p[1], p[2], p[3], max_ms
  FROM q
  WHERE kind <> 0
  ORDER BY 1, 2, 3
  ON CONFLICT (slot, type_id, outcome) DO UPDATE
  SET n = r.n + excluded.n,
      p50_ms = excluded.p50_ms,
      p90_ms = excluded.p90_ms,
      p99_ms = excluded.p99_ms,
      max_ms = greatest(r.max_ms, excluded.max_ms))
SELECT count(*)
FROM g
