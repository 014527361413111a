-- Ids of the jobs of the business key $1 in the shard $2, of the type $3 or of all: what is live, then the newest of
-- what has ended, $4 at most.
-- Index: _biz.
(SELECT job_id
 FROM tocsin.job_live
 WHERE shard = $2::smallint AND biz_id = $1::text AND ($3::integer IS NULL OR type_id = $3::integer)
 ORDER BY job_id
 LIMIT $4::integer)
UNION ALL
(SELECT job_id
 FROM tocsin.job_history
 WHERE biz_id = $1::text AND ($3::integer IS NULL OR type_id = $3::integer)
 ORDER BY job_id DESC
 LIMIT $4::integer)
LIMIT $4::integer
