-- A time as the API writes it: texts compare as times do.
to_char({{time}} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
