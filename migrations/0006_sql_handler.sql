-- Functions of `sql` handlers run as the role tocsin_handler. It can do nothing by itself: the business grants it EXECUTE on its
-- functions, USAGE on their schema, and what they need of its own tables. A role belongs to the server, so another database may have
-- made it already; who migrates without CREATEROLE has an administrator do what this block does.
DO $$
BEGIN
  BEGIN
    CREATE ROLE tocsin_handler NOLOGIN;
  EXCEPTION WHEN duplicate_object OR unique_violation OR insufficient_privilege THEN
    NULL;
  END;
  BEGIN
    -- The node's role must be able to become it. A superuser is it anyway.
    IF to_regrole('tocsin_handler') IS NOT NULL AND NOT pg_has_role('tocsin_handler', 'MEMBER') THEN
      EXECUTE format('GRANT tocsin_handler TO %I', current_user);
    END IF;
  EXCEPTION WHEN insufficient_privilege THEN
    NULL;
  END;
  IF to_regrole('tocsin_handler') IS NOT NULL THEN
    GRANT USAGE ON SCHEMA tocsin TO tocsin_handler;  -- names the type tocsin.job; no table comes with it
  END IF;
END $$;
