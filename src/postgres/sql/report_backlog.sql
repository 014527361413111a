-- Report: due jobs by type, and since when the oldest has been due. A type without due jobs is in every range from $2
-- to $3, with zeros.
-- Index: _due, by lane.
SELECT to_jsonb(q) || jsonb_build_object('oldest_due_at', {{iso time = q.oldest_due_at}})
FROM (
  SELECT *
  FROM tocsin.backlog b
  WHERE coalesce(b.oldest_due_at >= $2::timestamptz, true)
    AND coalesce(b.oldest_due_at < $3::timestamptz, true)) q
{{report_unpaged}}
