-- Of the types of new jobs, those that take none. One call per type.
ARRAY(
  SELECT type_id
  FROM (SELECT DISTINCT u.type_id FROM unnest($3::integer[]) u (type_id)) d
  WHERE NOT tocsin.takes_jobs(type_id)) AS closed
