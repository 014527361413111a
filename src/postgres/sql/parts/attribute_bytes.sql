-- The size of the attributes of the job j, or 0 if it does not have the type of the business key k.
CASE WHEN j.type_id <> k.type_id THEN 0 ELSE {{attribute_bytes_of_any_type}} END
