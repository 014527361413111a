-- Jobs of the business key $1 in the shard $2, of the type $3 or of all: (id, whether it is live). What is pending,
-- then what runs, then of the newest $4 of any type that have ended those of the type; $4 at most.
-- Index: _biz. Hazard: the live jobs of the key are sorted, so all of them are read, whatever $4.
(SELECT job_id, true
 FROM tocsin.job_live
 WHERE shard = $2::smallint AND biz_id = $1::text AND ($3::integer IS NULL OR type_id = $3::integer)
 ORDER BY status, job_id
 LIMIT $4::integer)
UNION ALL
(SELECT job_id, false
 FROM (
   SELECT job_id + 0 AS job_id, type_id
   FROM tocsin.job_history
   WHERE biz_id = $1::text
   ORDER BY job_id + 0 DESC
   LIMIT $4::integer) x
 WHERE $3::integer IS NULL OR type_id = $3::integer
 ORDER BY job_id DESC)
LIMIT $4::integer
