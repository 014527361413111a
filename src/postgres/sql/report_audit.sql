-- Report: the audit log, each bulk action with what it has changed so far. Its parameters: see report_page.
-- Index: the one by time; the primary key of bulk actions.
SELECT to_jsonb(q) || jsonb_build_object('at', {{iso time = q.at}}, 'audit_id', NULL)
FROM (
  SELECT a.audit_id, a.at, a.actor, a.role, a.address, a.action, a.target,
         CASE WHEN b.bulk_id IS NULL THEN a.filter ELSE jsonb_build_object('action', b.action) || coalesce(a.filter, '{}') END AS filter,
         a.matched,
         coalesce(a.changed, b.changed) AS changed, a.reason, coalesce(a.filter ->> 'biz_type', a.target) AS biz_type,
         lpad(a.audit_id::text, 20, '0') AS audit_key
  FROM tocsin.audit_log a
  LEFT JOIN tocsin.bulk b
    ON a.action = 'startBulk' AND b.bulk_id = CASE a.action WHEN 'startBulk' THEN a.target::bigint END) q
{{report_page time = q.at | keys = q.audit_key | seen = $6::text}}
