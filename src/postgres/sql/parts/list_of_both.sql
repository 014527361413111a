-- The rows of a list that has live jobs and finished ones.
{{live}}
UNION ALL
{{finished}}
