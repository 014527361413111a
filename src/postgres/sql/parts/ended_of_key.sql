-- The newest jobs of the business key k that have ended: of the newest $5 of any type those of its type, status 2. One
-- behind them has the status -1, whatever its type: there are more.
SELECT x.job_id, CASE WHEN x.n > $5::integer THEN -1 ELSE 2 END AS status
FROM (
  SELECT x.*, row_number() OVER (ORDER BY x.job_id DESC) AS n
  FROM (
    SELECT j.job_id + 0 AS job_id, j.type_id
    FROM tocsin.job_history j
    WHERE j.biz_id = k.biz_id
    ORDER BY j.job_id + 0 DESC
    LIMIT $5::integer + 1) x) x
WHERE x.n > $5::integer OR {{of_key}}
