-- Report: of each type with a target, how many jobs started from $2 (else 30 days ago) to $3, and how many missed it.
-- Index: the primary key of the slots.
SELECT to_jsonb(q)
FROM (
  SELECT t.name AS biz_type, (t.slo ->> 'lateness_ms')::double precision AS target_ms,
         (t.slo ->> 'share')::double precision AS target_share,
         ceil(date_part('epoch', least($3::timestamptz, statement_timestamp())
                                 - coalesce($2::timestamptz, statement_timestamp() - interval '30 days'))
              / 86400)::bigint AS days,
         coalesce(r.n, 0)::bigint AS n, coalesce(r.missed, 0)::bigint AS missed
  FROM tocsin.biz_type t
  CROSS JOIN LATERAL (
    SELECT sum(r.started) AS n, sum(r.missed) AS missed
    FROM tocsin.report_slot r
    WHERE r.grain = 3
      AND r.type_id = t.type_id
      AND r.slot > coalesce($2::timestamptz, statement_timestamp() - interval '30 days') - interval '1 microsecond'
      AND r.slot < coalesce($3::timestamptz, 'infinity')) r
  WHERE t.slo IS NOT NULL AND t.removed_at IS NULL) q
{{report_unpaged}}
