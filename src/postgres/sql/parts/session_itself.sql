-- Whether the settings of a session arrived, and its server process (ServerProcess).
current_setting('tocsin.session', true),
pg_backend_pid(), (SELECT backend_start FROM pg_stat_get_activity(pg_backend_pid()))
