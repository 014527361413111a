-- How many jobs are due in the minutes from $2 to $3, as the horizon has counted them; NULL when it has not.
-- Index: the primary key.
SELECT to_jsonb(q)
FROM (
  SELECT NULL::text AS biz_type, sum(h.n)::bigint AS n
  FROM tocsin.horizon_slot h
  JOIN tocsin.biz_type t USING (type_id)
  WHERE h.width = 'minute' AND h.slot >= $2::timestamptz AND h.slot < $3::timestamptz) q
{{report_unpaged}}
