-- The superuser that the session's role is, or may become as a member; its own name first, because a superuser counts as
-- a member of every role.
-- Index: none; a catalog of roles is small.
SELECT rolname
FROM pg_roles
WHERE rolsuper AND pg_has_role(session_user, oid, 'MEMBER')
ORDER BY rolname <> session_user, rolname
LIMIT 1
