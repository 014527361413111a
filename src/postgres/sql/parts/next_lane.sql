-- The first lane of w.shard with rows, of the types from w.first to w.last, and when its first row is due. A search
-- steps from one such lane to the next, so lanes without rows cost nothing.
(SELECT l.type_id, l.fire_at
 FROM tocsin.job_live l
 WHERE l.shard = w.shard AND l.shard + 0 = w.shard::integer
   AND l.type_id >= w.first
   AND l.type_id <= w.last
 ORDER BY l.type_id, l.fire_at
 LIMIT 1) n
