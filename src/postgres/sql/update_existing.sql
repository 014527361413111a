-- Pending jobs that their keys' new creates change, for each the rule of its own ($9): earliest and latest where the
-- time wins, replace always. Each job once, in one order for all, or two calls could wait for each other's rows.
-- Index: _id. Hazard: lateral, for a plain join may read all that is pending, and lock in an order of its own.
WITH k AS MATERIALIZED (
  SELECT k.*, coalesce(k.given_at, clock_timestamp() + k.in_us * interval '1 microsecond') AS at
  FROM unnest($1::smallint[], $2::bigint[], $3::timestamptz[], $4::bigint[], $5::jsonb[], $6::smallint[], $7::text[],
              $8::integer[], $9::text[])
         k (shard, job_id, given_at, in_us, attribute, max_attempts, requested_time, own_max_attempts, rule)),
c AS MATERIALIZED (
  SELECT k.*
  FROM k
  CROSS JOIN LATERAL (
    SELECT FROM tocsin.job_live j
    WHERE j.shard = k.shard
      AND j.job_id = k.job_id
      AND j.status = 0
      AND CASE k.rule WHEN 'earliest' THEN k.at < j.action_time WHEN 'latest' THEN k.at > j.action_time ELSE true END
    FOR UPDATE OF j) j)
UPDATE tocsin.job_live j
SET action_time = c.at,
    fire_at = greatest(c.at, clock_timestamp()),
    gmt_modified = clock_timestamp(),
    started_at = NULL,
    late_from = CASE WHEN c.at < clock_timestamp() THEN clock_timestamp() END,
    attribute = c.attribute,
    attempts = 0,
    max_attempts = c.max_attempts,
    body_hash = tocsin.body_hash(c.requested_time, c.attribute, c.own_max_attempts)
FROM c
WHERE j.shard = c.shard AND j.job_id = c.job_id AND j.status = 0
RETURNING {{live_columns}}
