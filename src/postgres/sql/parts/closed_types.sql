-- Those of the types {{types}} (each once) that take no jobs.
ARRAY(
  SELECT k.type_id
  FROM (SELECT unnest({{types}}::integer[]) AS type_id) k
  WHERE NOT tocsin.takes_jobs(k.type_id)) AS closed
