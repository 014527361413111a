-- Report: the jobs that are dead now, by type and reason: the newest 10,000 of them; is_exact says whether that is all.
-- Index: the primary keys of the days of history, backwards. Hazard: texts are read, so the number of rows is bounded.
SELECT to_jsonb(q) || jsonb_build_object('first_at', {{iso time = q.first_at}}, 'last_at', {{iso time = q.last_at}},
                                         'sample_job_id', q.sample_job_id::text)
FROM (
  SELECT t.name AS biz_type, d.reason, d.n, d.is_exact, d.first_at, d.last_at, d.sample_job_id
  FROM (
    WITH x AS MATERIALIZED (
      SELECT h.type_id, h.errors -> -1 ->> 'message' AS message, h.finished_at, h.job_id
      FROM tocsin.job_history_dead h
      WHERE tocsin.lives_here(h.shard)
        AND ($1::text IS NULL
             OR h.type_id = (SELECT b.type_id FROM tocsin.biz_type b WHERE b.name = $1::text AND b.removed_at IS NULL))
      ORDER BY h.job_id DESC
      LIMIT 10001)
    SELECT x.type_id, tocsin.death_reason(x.message) AS reason, count(*) AS n,
           (SELECT count(*) FROM x) <= 10000 AS is_exact, min(x.finished_at) AS first_at,
           max(x.finished_at) AS last_at, max(x.job_id) AS sample_job_id
    FROM x
    GROUP BY 1, 2) d
  JOIN tocsin.biz_type t USING (type_id)) q
{{report_unpaged}}
