-- Writes entries of the audit log.
-- Index: none is read.
INSERT INTO tocsin.audit_log (actor, role, address, action, target, filter, matched, changed, reason)
SELECT *
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::jsonb[], $7::bigint[], $8::bigint[],
            $9::text[])
