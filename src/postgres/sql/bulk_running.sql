-- A bulk operation that runs. Index: bulk_running.
SELECT bulk_id FROM tocsin.bulk WHERE state = 'running' LIMIT 1
