-- A new deadline for the pending jobs $1, $2: $3, or $4 microseconds from now, or now where neither is given. All or
-- none: gives up (55P03) when a row stays locked for 50 ms. REQUIRES: each job once, and a transaction of its own.
-- Index: _id. Hazard: the ids come sorted, see cancel_together.
WITH {{row_lock_wait}},
c AS MATERIALIZED (
  SELECT k.*
  FROM s, {{changes_given}})
{{changed}}
