-- Detaches the table {{table}} of a day from the history of the status {{status}}. {{how}}: CONCURRENTLY, or FINALIZE for
-- a detach that was interrupted.
-- Index: none is read. Hazard: without CONCURRENTLY the lock would stop every finish.
ALTER TABLE tocsin.job_history_{{status}} DETACH PARTITION tocsin.{{table}} {{how}}
