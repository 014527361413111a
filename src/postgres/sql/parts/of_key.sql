-- Whether the job x has the type of the business key k, or the key means all types. Hazard: of a key with a long past,
-- this below a limit reads all that the key ever had; so rows are counted first, and then filtered.
(k.type_id IS NULL OR x.type_id = k.type_id)
