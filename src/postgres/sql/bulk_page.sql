-- The next {{limit}} jobs after {{after}} that a bulk operation changes, of those that were there when it started, each
-- with 0; then (the last id that was read, how many rows were). {{key}}: the condition of a biz_id; {{id}}: the id as
-- the index that fits has it; {{matches}}: bulk_matches.
-- Index: _id of every table, merged by job_id; with a biz_id _biz. Hazard: at most {{page_rows}} rows are read, so that
-- a filter that matches little costs one batch no more than one that matches much.
WITH page AS MATERIALIZED (
  SELECT *
  FROM {{table}} j
  WHERE {{id}} > {{after}} AND {{key}}
  ORDER BY {{id}}
  LIMIT {{page_rows}}),
hit AS (
  SELECT j.job_id
  FROM page j
  WHERE {{matches}}
  ORDER BY j.job_id
  LIMIT {{limit}})
SELECT job_id, 0
FROM hit
UNION ALL
SELECT max(job_id), count(*)
FROM page
