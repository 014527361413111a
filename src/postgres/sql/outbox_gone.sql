-- Of these entries those that are not in the outbox any more.
-- Index: the primary key of tocsin.outbox, once per id.
SELECT j FROM unnest($1::bigint[]) j WHERE NOT EXISTS (SELECT FROM tocsin.outbox o WHERE o.job_id = j)
