-- From now on job ids are drawn from {{start}} in steps of {{step}}.
-- Index: none is read.
ALTER SEQUENCE tocsin.job_seq INCREMENT BY {{step}} RESTART WITH {{start}}
