-- Locks the tables that a retry writes, so that the transaction waits for no lock of them later. Hazard: waits for CREATE
-- INDEX and REINDEX of one of them.
-- Index: none.
LOCK TABLE tocsin.job_live, tocsin.job_history_dead IN ROW EXCLUSIVE MODE
