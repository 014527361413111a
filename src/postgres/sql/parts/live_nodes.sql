-- Nodes that live, draining ones included, as other members see them. They are not watched from here, so the time
-- allowed is a little generous.
FROM tocsin.node n
WHERE (n.heartbeat_at > clock_timestamp() - interval '10 s'
       OR n.heartbeat_at > clock_timestamp() - interval '1 min'
          AND EXISTS (SELECT FROM pg_stat_get_activity(n.backend_pid) a WHERE a.backend_start = n.backend_start))
