-- A row j that may start an attempt: pending, or running with its lease ended.
j.attempts < j.max_attempts AND j.fire_at <= clock_timestamp()
