-- The newest {{limit}} jobs of {{table}}, or of its rows newest_rows, that fit {{conditions}}. {{id}}: the id as the index
-- that fits has it.
(SELECT {{columns}}
 FROM {{table}} j
 WHERE {{conditions}}
 ORDER BY {{id}} DESC
 LIMIT {{limit}})
