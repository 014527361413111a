-- The end of a write freeze, if its driver does not extend it.
clock_timestamp() + interval '{{thaw_lease_ms}} ms'
