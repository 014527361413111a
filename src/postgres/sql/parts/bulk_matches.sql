-- Whether the job j is one of those that a bulk operation changes: it was there when the operation started, lives here,
-- and has what the filter asks for. {{began}}: the column that says since when the job is there.
j.status = {{status}} AND j.{{began}} <= {{started_at}} AND tocsin.lives_here(j.shard) AND {{conditions}}
