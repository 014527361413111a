-- The number of jobs that a bulk operation would change, of those that live here. {{conditions}}: its filter.
-- Index: with a biz_id _biz; else the table is read.
SELECT count(*)
FROM {{table}} j
WHERE j.status = {{status}} AND {{conditions}} AND tocsin.lives_here(j.shard)
