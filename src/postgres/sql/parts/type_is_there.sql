-- Of dead jobs h: leaves out those of removed types early. takes_jobs() decides, see revive.
AND NOT EXISTS (SELECT FROM tocsin.biz_type t WHERE t.type_id = h.type_id AND t.removed_at IS NOT NULL)
