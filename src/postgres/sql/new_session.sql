-- The first request of a session: whether its settings arrived, and which database answers.
SELECT current_setting('tocsin.session', true), {{identity}}
