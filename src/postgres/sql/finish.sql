-- Writes the outcomes of attempts, guarded by the claim token alone: an outcome of this installation's nodes counts
-- even when the lease has ended, unless the job has been claimed again since.
-- Index: _id. Hazard: SKIP LOCKED in a materialized CTE, see claim; what is left out is asked for by still_claimed.
{{finish_claimed guard =}}
