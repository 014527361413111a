-- Writes the outcomes that consumers report, through the parent: only while the lease is valid. Skips locked rows.
-- Index: _id. Hazard: as finish.
{{finish_claimed table = tocsin.job_live | guard = AND j.fire_at > clock_timestamp()}}
