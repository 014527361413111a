-- A job j of the business key k.
j.biz_id = k.biz_id AND (k.type_id IS NULL OR j.type_id = k.type_id)
