-- Events and lateness of about the last quarter of an hour, by type.
-- Index: the primary keys of both tables.
SELECT to_jsonb(q)
FROM (
  SELECT t.name AS biz_type, {{recent}}
  GROUP BY t.name) q
{{report_unpaged}}
