-- The first request of a session that any database may answer.
-- Index: none.
SELECT {{session_itself}}
