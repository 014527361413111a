-- Subscribes to the publication of the same name. synchronous_commit: what the subscriber confirms must be on its disk,
-- because the source's rows will be deleted. The slot exists already: created here, it would wait for ever where both
-- databases are of one server.
-- Index: none is read.
CREATE SUBSCRIPTION {{subscription}} CONNECTION {{source}} PUBLICATION {{subscription}}
WITH (create_slot = false, slot_name = '{{slot}}', synchronous_commit = 'on')
