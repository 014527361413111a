-- The first request of a session that any database may answer.
SELECT {{session_itself}}
