-- The counts that fold_counts adds up.
INSERT INTO tocsin.job_count_delta (type_id, status, n, detail, event, sample_job_id, reason)
