-- Deletes removed types whose last job is gone from history, too. A day later than the oldest table of history, because
-- clocks differ. Reports name the type, too. The control database of several keeps removed types: it does not know
-- whether another one has jobs or reports of them.
-- Index: _due, one look per shard.
DELETE FROM tocsin.biz_type t
WHERE t.removed_at IS NOT NULL
  AND NOT EXISTS (SELECT FROM tocsin.database d WHERE d.place <> 0)
  AND (t.removed_at AT TIME ZONE 'UTC')::date + 1
      < (SELECT min(to_date(right(c.relname, 8), 'YYYYMMDD'))
         FROM pg_class c
         WHERE c.relnamespace = 'tocsin'::regnamespace
           AND c.relkind = 'r'
           AND c.relname ~ '^job_history_[a-z]+_[0-9]{8}$')
  AND NOT EXISTS (SELECT FROM tocsin.report_slot r WHERE r.grain = 3 AND r.type_id = t.type_id)
  AND NOT ({{has_live_jobs type = t.type_id}})
