-- Report: the jobs that are dead now, by type and reason: the 10,000 created last; is_exact says whether that is all.
-- The sample is the one that died last.
-- Index: the primary keys of the days of history, backwards. Hazard: texts are read and normalised, so the number of
-- rows is bounded, and equal texts are normalised once; lives_here would be called for each row.
SELECT to_jsonb(q) || jsonb_build_object('first_at', {{iso time = q.first_at}}, 'last_at', {{iso time = q.last_at}},
                                         'sample_job_id', q.sample_job_id::text)
FROM (
  SELECT t.name AS biz_type, d.reason, d.n, d.is_exact, d.first_at, d.last_at, d.sample_job_id
  FROM (
    WITH x AS MATERIALIZED (
      SELECT h.type_id, h.errors -> -1 ->> 'message' AS message, h.finished_at, h.job_id
      FROM tocsin.job_history_dead h
      WHERE h.shard = ANY ((SELECT tocsin.shards_here())::smallint[])
        AND ($1::text IS NULL
             OR h.type_id = (SELECT b.type_id FROM tocsin.biz_type b WHERE b.name = $1::text AND b.removed_at IS NULL))
      ORDER BY h.job_id DESC
      LIMIT 10001),
    m AS MATERIALIZED (
      SELECT type_id, message, count(*) AS n, min(finished_at) AS first_at, max(finished_at) AS last_at,
             (array_agg(job_id ORDER BY finished_at DESC, job_id DESC))[1] AS sample_job_id
      FROM x
      GROUP BY 1, 2)
    SELECT m.type_id, tocsin.death_reason(m.message) AS reason, sum(m.n)::bigint AS n,
           (SELECT count(*) FROM x) <= 10000 AS is_exact, min(m.first_at) AS first_at, max(m.last_at) AS last_at,
           (array_agg(m.sample_job_id ORDER BY m.last_at DESC, m.sample_job_id DESC))[1] AS sample_job_id
    FROM m
    GROUP BY 1, 2) d
  JOIN tocsin.biz_type t USING (type_id)) q
{{report_unpaged}}
