-- The size of the due index of one live table; 0 where a database of few shards has no such table.
coalesce(pg_relation_size(to_regclass('tocsin.job_live_{{table}}_due')), 0)
