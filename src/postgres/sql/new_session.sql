-- The first request of a session: whether its settings arrived, its server process, and which database answers.
-- Index: that of pg_database by name.
SELECT {{session_itself}}, {{identity}}
