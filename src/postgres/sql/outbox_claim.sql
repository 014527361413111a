-- Claims up to $3 entries for the relay $2: of its own shards $1, and of other shards $4 those older than ten seconds.
-- Entries tried before come last, also in the answer, so that one that cannot be taken over holds up no other.
-- Index: outbox_due. Guard: whether an entry is free is checked again under the lock.
WITH c AS MATERIALIZED (
  SELECT o.job_id, o.claimed_by IS NOT NULL AS was_tried, o.action_time, s.is_mine
  FROM (SELECT shard, true AS is_mine FROM unnest($1::smallint[]) m (shard)
        UNION ALL
        SELECT shard, false FROM unnest($4::smallint[]) f (shard)) s
  CROSS JOIN LATERAL (
    SELECT o.job_id, o.action_time, o.claimed_by
    FROM tocsin.outbox o
    WHERE o.shard = s.shard AND (s.is_mine OR o.gmt_create < clock_timestamp() - interval '10 seconds')
      AND {{outbox_is_free}}
    ORDER BY o.action_time, o.job_id
    LIMIT $3::integer) o
  ORDER BY was_tried, o.action_time, o.job_id
  LIMIT $3::integer),
l AS MATERIALIZED (
  SELECT o.job_id
  FROM c s JOIN tocsin.outbox o ON o.job_id = s.job_id
  WHERE {{outbox_is_free}}
  FOR UPDATE OF o SKIP LOCKED),
u AS (
  UPDATE tocsin.outbox o
  SET claimed_by = $2::bigint, claimed_at = clock_timestamp()
  FROM l
  WHERE o.job_id = l.job_id
  RETURNING o.*)
SELECT u.* FROM u JOIN c ON c.job_id = u.job_id ORDER BY c.was_tried, c.action_time, c.job_id
