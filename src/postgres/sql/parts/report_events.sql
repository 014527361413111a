-- The counts of events of a slot.
{{of}}.created, {{of}}.done, {{of}}.cancelled, {{of}}.dead, {{of}}.dropped_late, {{of}}.revived, {{of}}.attempts,
{{of}}.retried, {{of}}.max_ms
