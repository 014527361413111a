-- Counts that rows d leave the status {{left}}; what they become follows.
{{count_into}}
SELECT d.type_id, {{left}}, -count(*), NULL::integer, NULL::smallint, NULL::bigint, NULL::text
FROM d
GROUP BY 1, 2
UNION ALL
