-- Jobs of the business key $1 in the shard $2, of the type $3 or of all: (id, status). The first $4 of those that are live,
-- pending ones in front; then, of those that have ended, as ended_of_key.
-- Index: _biz. Hazard: the live jobs of the key are sorted, so all of them are read, whatever $4.
(SELECT job_id, status::integer
 FROM tocsin.job_live
 WHERE shard = $2::smallint AND biz_id = $1::text AND ($3::integer IS NULL OR type_id = $3::integer)
 ORDER BY status, job_id
 LIMIT $4::integer)
UNION ALL
SELECT x.job_id, x.status
FROM (SELECT $1::text AS biz_id, $3::integer AS type_id) k
CROSS JOIN LATERAL ({{ended_of_key}}) x
