-- Counts the final event of rows d, by the day of their creation.
{{count_left}}
SELECT d.type_id, {{status}}::smallint, count(*), tocsin.day_of(d.gmt_create) * 64, {{event}}::smallint,
       {{sample}}, {{reason}}
FROM d
GROUP BY d.type_id, 4, 7
