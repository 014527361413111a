-- Adds up to 50,000 deltas to the counts and to the tables of reports, and deletes them; returns how many. $1: that
-- many reasons of deaths are kept by type and day; later ones become "other".
-- Index: the primary keys; deltas are found by ctid. Hazard: deltas are deleted and their sums added in one statement:
-- a reader sees both or neither, and each counts once. The advisory lock lets one node fold at a time: to lock rows
-- before they are deleted would cost as much log again as their deletion, and nodes would wait. Rows are written in the
-- order of their keys, so that nodes cannot deadlock.
WITH d AS (
  DELETE FROM tocsin.job_count_delta
  WHERE ctid = ANY (ARRAY(
    SELECT r.ctid
    FROM (SELECT pg_try_advisory_xact_lock(hashtextextended('tocsin.fold_counts', 0)) AS is_mine OFFSET 0) l
    JOIN tocsin.job_count_delta r ON l.is_mine
    LIMIT 50000))
  RETURNING *),
f AS (
  INSERT INTO tocsin.job_count AS c
  SELECT type_id, status, sum(n)
  FROM d
  WHERE status IS NOT NULL
  GROUP BY 1, 2
  ORDER BY 1, 2
  ON CONFLICT (type_id, status) DO UPDATE
  SET n = c.n + excluded.n),
e AS MATERIALIZED (  -- events by slot
  SELECT date_bin('15 minutes', at, '2000-01-01 00:00:00+00') AS slot, type_id, detail >> 6 AS day,
         coalesce(sum(n) FILTER (WHERE event = 1), 0) AS created,
         coalesce(sum(n) FILTER (WHERE event IN (2, 9)), 0) AS done,
         coalesce(sum(n) FILTER (WHERE event = 3), 0) AS cancelled,
         coalesce(sum(n) FILTER (WHERE event IN (4, 5)), 0) AS dead,
         coalesce(sum(n) FILTER (WHERE event = 5), 0) AS dropped_late,
         coalesce(sum(n) FILTER (WHERE event = 6), 0) AS revived,
         coalesce(sum(CASE event WHEN 10 THEN -n ELSE n END) FILTER (WHERE event IN (7, 9, 10)), 0) AS attempts,
         coalesce(sum(n) FILTER (WHERE event = 8), 0) AS retried
  FROM d
  WHERE event IS NOT NULL
  GROUP BY 1, 2, 3),
s AS (  -- in all grains
  INSERT INTO tocsin.report_slot AS r (grain, slot, type_id, created, done, cancelled, dead, dropped_late, revived,
                                       attempts, retried)
  SELECT g.grain, date_bin(g.width, e.slot, '2000-01-01 00:00:00+00'), e.type_id, sum(created), sum(done),
         sum(cancelled), sum(dead), sum(dropped_late), sum(revived), sum(attempts), sum(retried)
  FROM e, (VALUES (1::smallint, interval '15 minutes'), (2, '1 hour'), (3, '1 day')) g (grain, width)
  GROUP BY 1, 2, 3
  ORDER BY 1, 2, 3
  ON CONFLICT (grain, slot, type_id) DO UPDATE
  SET version = r.version + 1,
      created = r.created + excluded.created,
      done = r.done + excluded.done,
      cancelled = r.cancelled + excluded.cancelled,
      dead = r.dead + excluded.dead,
      dropped_late = r.dropped_late + excluded.dropped_late,
      revived = r.revived + excluded.revived,
      attempts = r.attempts + excluded.attempts,
      retried = r.retried + excluded.retried),
o AS (
  INSERT INTO tocsin.report_created_day AS r (day, type_id, created, done, cancelled, dead)
  SELECT date '1970-01-01' + day, type_id, sum(created), sum(done), sum(cancelled), sum(dead) - sum(revived)
  FROM e
  WHERE day IS NOT NULL
  GROUP BY 1, 2
  ORDER BY 1, 2
  ON CONFLICT (day, type_id) DO UPDATE
  SET created = r.created + excluded.created,
      done = r.done + excluded.done,
      cancelled = r.cancelled + excluded.cancelled,
      dead = r.dead + excluded.dead),
l AS (
  INSERT INTO tocsin.report_delay_day AS r
  SELECT date '1970-01-01' + (detail >> 6), type_id, detail & 63, sum(n)
  FROM d
  WHERE event = 1
  GROUP BY 1, 2, 3
  ORDER BY 1, 2, 3
  ON CONFLICT (day, type_id, bucket) DO UPDATE
  SET n = r.n + excluded.n),
x AS (  -- deaths by reason
  SELECT date_bin('1 day', at, '2000-01-01 00:00:00+00') AS slot, type_id, coalesce(reason, '') AS reason, sum(n) AS n,
         min(at) AS first_at, max(at) AS last_at, max(sample_job_id) AS sample
  FROM d
  WHERE event IN (4, 5)
  GROUP BY 1, 2, 3),
y AS (
  SELECT x.*,
         EXISTS (
           SELECT
           FROM tocsin.report_death p
           WHERE p.slot = x.slot AND p.type_id = x.type_id AND p.reason = x.reason) AS is_known,
         (SELECT count(*)
          FROM tocsin.report_death p
          WHERE p.slot = x.slot AND p.type_id = x.type_id AND p.reason <> 'other') AS known
  FROM x),
z AS (
  SELECT y.*,
         is_known OR known + row_number() OVER (PARTITION BY slot, type_id, is_known ORDER BY reason) <= $1::integer
           AS is_named
  FROM y),
w AS (
  INSERT INTO tocsin.report_death AS r
  SELECT slot, type_id, CASE WHEN is_named THEN reason ELSE 'other' END, sum(n), min(first_at), max(last_at),
         max(sample)
  FROM z
  GROUP BY 1, 2, 3
  ORDER BY 1, 2, 3
  ON CONFLICT (slot, type_id, reason) DO UPDATE
  SET n = r.n + excluded.n,
      first_at = least(r.first_at, excluded.first_at),
      last_at = greatest(r.last_at, excluded.last_at),
      sample_job_id = coalesce(excluded.sample_job_id, r.sample_job_id))
SELECT count(*)
FROM d
