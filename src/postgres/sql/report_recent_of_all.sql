-- Events and lateness of about the last quarter of an hour, of all types together.
-- Index: the primary keys of both tables.
SELECT to_jsonb(q)
FROM (SELECT NULL::text AS biz_type, {{recent}}) q
{{report_unpaged}}
