-- Which of the keys that create_keyed has just inserted belong to a job of history: their ordinals. Run after it, with a
-- snapshot of its own: a job may have gone to history while the insert waited for its row. A live job with such a key
-- cannot exist, the unique index refuses it.
-- Index: _key of history.
SELECT k.ord
FROM unnest($1::integer[], $2::text[], $3::text[]) WITH ORDINALITY k (type_id, biz_id, key, ord)
JOIN tocsin.job_history j ON j.biz_id = k.biz_id AND j.type_id = k.type_id AND j.idempotency_key = k.key
