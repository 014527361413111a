-- Takes back jobs $1, $2 that the same transaction created, and their counts.
-- Index: _id.
WITH d AS (
  DELETE FROM tocsin.job_live j USING unnest($1::smallint[], $2::bigint[]) k (shard, job_id)
  WHERE j.shard = k.shard AND j.job_id = k.job_id
  RETURNING j.type_id, j.action_time, j.gmt_create)
INSERT INTO tocsin.job_count_delta (type_id, status, n, detail, event)
SELECT type_id, 0, -count(*), tocsin.created_detail(action_time, gmt_create), 1::smallint
FROM d
GROUP BY 1, 4
