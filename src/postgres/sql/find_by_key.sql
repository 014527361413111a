-- The jobs that have the keys already, live and history. Run after create_keyed, with a snapshot of its own: one that
-- began before the other create's commit would not see its row.
-- Index: _key of both.
SELECT {{live_columns}}, {{is_same}}
FROM {{keys_given}}
JOIN tocsin.job_live j
  ON j.shard = k.shard AND j.biz_id = k.biz_id AND j.type_id = k.type_id AND j.idempotency_key = k.key
     AND j.job_id <> k.job_id
UNION ALL
SELECT {{history_columns}}, {{is_same}}
FROM {{keys_given}}
JOIN tocsin.job_history j ON j.biz_id = k.biz_id AND j.type_id = k.type_id AND j.idempotency_key = k.key
