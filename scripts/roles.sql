-- The roles of an installation, each with the smallest rights that it can work with. docs/security.md says why.
--
--   psql -f scripts/roles.sql SUPERUSER_URL      once before `tocsin migrate`, which runs as the node's role,
--   psql -f scripts/roles.sql SUPERUSER_URL      and once after it; in every database. Safe to repeat.
--
-- Variables (psql -v NAME=VALUE): node (tocsin_node), business (tocsin_business), reporter (a login role that may read
-- the reports; none), mover (a superuser that may not log in until a move needs it; none). Give the login roles
-- passwords, or certificates, afterwards.
\set ON_ERROR_STOP on
\set QUIET on
SET client_min_messages = warning;
\if :{?node} \else \set node tocsin_node \endif
\if :{?business} \else \set business tocsin_business \endif

-- Groups without rights of their own: functions of sql handlers run as the first, reports are read by the second.
SELECT format('CREATE ROLE %I NOLOGIN', name) FROM unnest(ARRAY['tocsin_handler', 'tocsin_report']) name
 WHERE to_regrole(name) IS NULL \gexec

-- The node owns the schema, because it makes and drops the tables of each day. It is no superuser: a function of an sql
-- handler that leaves its sandbox would be one, too. It must be able to become tocsin_handler.
SELECT format('CREATE ROLE %I LOGIN', :'node') WHERE to_regrole(quote_ident(:'node')) IS NULL \gexec
ALTER ROLE :"node" NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
GRANT tocsin_handler TO :"node";
SELECT format('GRANT CONNECT, TEMPORARY ON DATABASE %I TO %I', current_database(), :'node') \gexec
-- Only for the migration that makes the schema.
SELECT CASE WHEN to_regnamespace('tocsin') IS NULL THEN format('GRANT CREATE ON DATABASE %I TO %I', current_database(), :'node')
            ELSE format('REVOKE CREATE ON DATABASE %I FROM %I', current_database(), :'node') END \gexec

-- A business calls functions, in its own transactions; it reads no table and no view of Tocsin's.
SELECT format('CREATE ROLE %I LOGIN', :'business') WHERE to_regrole(quote_ident(:'business')) IS NULL \gexec
SELECT format('GRANT USAGE ON SCHEMA tocsin TO %I', :'business') WHERE to_regnamespace('tocsin') IS NOT NULL \gexec
SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I', p.oid::regprocedure, :'business')
  FROM pg_proc p
 WHERE p.pronamespace = to_regnamespace('tocsin') AND p.proname IN ('create_job', 'cancel_job', 'cancel_jobs', 'reschedule_job') \gexec

-- Functions of sql handlers may create and cancel the jobs that follow. The migration grants this, too, if the role is there.
SELECT 'GRANT USAGE ON SCHEMA tocsin TO tocsin_handler' WHERE to_regnamespace('tocsin') IS NOT NULL \gexec
SELECT format('GRANT EXECUTE ON FUNCTION %s TO tocsin_handler', p.oid::regprocedure)
  FROM pg_proc p
 WHERE p.pronamespace = to_regnamespace('tocsin') AND p.proname IN ('create_job', 'cancel_job', 'cancel_jobs', 'reschedule_job') \gexec

\if :{?reporter}
SELECT format('CREATE ROLE %I LOGIN', :'reporter') WHERE to_regrole(quote_ident(:'reporter')) IS NULL \gexec
GRANT tocsin_report TO :"reporter";
\endif

-- `tocsin shard move` makes a subscription and deletes rows as a replica: both need a superuser (PostgreSQL 15).
-- ALTER ROLE ... LOGIN before a move, NOLOGIN after it.
\if :{?mover}
SELECT format('CREATE ROLE %I NOLOGIN SUPERUSER', :'mover') WHERE to_regrole(quote_ident(:'mover')) IS NULL \gexec
\endif
