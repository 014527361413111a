-- running -> done, dead or pending, for the jobs $1, $2 whose claim has the token $3 ({{guard}}: what else must
-- hold).
-- Kind $4: 2 done, 4 dead, 0 retry, 1 release, which uncounts the attempt. Answers the ordinals that were applied, and
-- the types of their jobs. No answer for a row of a shard that does not live here.
WITH c AS MATERIALIZED (
  SELECT k.*, j.type_id
  FROM unnest($1::smallint[], $2::bigint[], $3::bigint[], $4::smallint[], $5::bigint[], $6::text[])
         WITH ORDINALITY k (shard, job_id, token, kind, delay_us, message, ord)
  JOIN {{table}} j ON j.shard = k.shard AND j.job_id = k.job_id
  WHERE j.status = 1 AND j.claim_token = k.token {{guard}} AND {{is_here shard = j.shard}}
  FOR UPDATE OF j SKIP LOCKED),
d AS (
  DELETE FROM {{table}} j USING c
  WHERE c.kind IN (2, 4) AND j.shard = c.shard AND j.job_id = c.job_id
  RETURNING j.*, c.kind, c.message, c.ord),
h AS (
  INSERT INTO tocsin.job_history {{history_into}}
  {{history_row status = d.kind | started_at = d.started_at
    | last_start = CASE WHEN d.kind = 2 AND d.started_at < d.gmt_modified THEN d.gmt_modified END
    | attempts = d.attempts | node = d.node
    | errors = CASE d.kind
        WHEN 4 THEN tocsin.append_error(d.errors, clock_timestamp(), $7::text, d.attempts, d.message, d.gmt_modified)
        ELSE d.errors
      END}}),
u AS (
  UPDATE {{table}} j
  SET status = 0,
      claim_token = NULL,
      attempts = j.attempts - c.kind,
      fire_at = {{not_before_deadline at = clock_timestamp() + c.delay_us * interval '1 microsecond'}},
      gmt_modified = clock_timestamp(),
      started_at = CASE
        WHEN c.kind = 1 AND (j.attempts = 1 OR j.started_at >= j.gmt_modified) THEN NULL
        ELSE j.started_at
      END,
      errors = CASE c.kind
        WHEN 0 THEN tocsin.append_error(j.errors, clock_timestamp(), $7::text, j.attempts, c.message, j.gmt_modified)
        ELSE j.errors
      END
  FROM c
  WHERE c.kind IN (0, 1) AND j.shard = c.shard AND j.job_id = c.job_id
  RETURNING j.type_id, c.ord, c.kind),
-- Counted from the rows that moved, not from c: a request given twice moves its row once.
-- Events: 2 done, 4 dead, 8 retried, 10 released.
n AS (
  {{count_into}}
  SELECT b.type_id, 1, -count(*), NULL::integer, NULL::smallint, NULL::bigint, NULL::text
  FROM (SELECT type_id FROM d UNION ALL SELECT type_id FROM u) b
  GROUP BY 1
  UNION ALL
  SELECT d.type_id, d.kind, count(*), tocsin.day_of(d.gmt_create) * 64, d.kind,
         max(d.job_id) FILTER (WHERE d.kind = 4), CASE d.kind WHEN 4 THEN tocsin.death_reason(d.message) END
  FROM d
  GROUP BY 1, 2, 4, 7
  UNION ALL
  SELECT type_id, 0, count(*), NULL, CASE kind WHEN 0 THEN 8::smallint ELSE 10::smallint END, NULL, NULL
  FROM u
  GROUP BY type_id, kind)
SELECT ord, type_id FROM d
UNION ALL
SELECT ord, type_id FROM u
