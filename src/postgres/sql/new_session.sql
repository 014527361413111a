-- The first request of a session: whether its settings arrived, its server process, and which database answers.
SELECT {{session_itself}}, {{identity}}
