-- Locks the running rows whose token is valid and calls the function $4.$5 for them, inside the session's sandbox
-- (function_sandbox). tocsin.job is built from the live row, since the view would read every table that a job may be in. Answers
-- (ordinal, answer).
-- Index: _id. Hazard: r is materialized: as a plain join the planner may put the function inside, and call it once per
-- row of c. SKIP LOCKED as in finish.
WITH c AS MATERIALIZED (
  SELECT k.ord, j.*
  FROM unnest($1::smallint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY k (shard, job_id, token, ord)
  JOIN {{table}} j ON j.shard = k.shard AND j.job_id = k.job_id
  WHERE j.status = 1 AND j.claim_token = k.token AND {{is_here shard = j.shard}}
  FOR UPDATE OF j SKIP LOCKED),
a AS MATERIALIZED (
  SELECT array_agg(
           ROW(c.job_id, c.biz_id, t.name, 'running', c.action_time, c.fire_at, c.attempts, c.max_attempts,
               c.attribute, c.idempotency_key, c.shard, c.node, c.gmt_create, c.gmt_modified, c.started_at, NULL,
               round((extract(epoch FROM greatest(
                        c.started_at - coalesce(c.late_from, greatest(c.action_time, c.gmt_create)),
                        interval '0')) * 1000)::numeric, 3),
               coalesce(c.errors, '[]'))::tocsin.job
           ORDER BY c.ord) AS jobs
  FROM c JOIN tocsin.biz_type t ON t.type_id = c.type_id),
r AS MATERIALIZED (
  SELECT r.job_id, r.answer
  FROM a CROSS JOIN LATERAL pg_temp.tocsin_call($4::text, $5::text, a.jobs) r)
SELECT c.ord, r.answer
FROM r JOIN c ON c.job_id = r.job_id
