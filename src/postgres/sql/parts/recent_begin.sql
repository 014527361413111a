-- The quarter of an hour that runs, and the one before it until that has been over for ten minutes.
date_bin('15 minutes', statement_timestamp() - interval '10 minutes', '2000-01-01 00:00:00+00')
