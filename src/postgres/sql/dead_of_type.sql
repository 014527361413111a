-- Up to $4 dead jobs of the type $1 that died from $2 to $3 and that no other transaction has locked, oldest first; of
-- those that died at $2, the ones with an id above $5. Index: the days' tables of history bound what is read. Hazard: locks
-- the rows only to leave out locked ones; the locks end with the statement.
SELECT h.job_id, h.finished_at
FROM tocsin.job_history_dead h
WHERE h.type_id = $1::integer
  AND h.finished_at >= $2::timestamptz
  AND (h.finished_at, h.job_id) > ($2::timestamptz, $5::bigint)
  AND h.finished_at < $3::timestamptz
  AND tocsin.lives_here(h.shard)
  {{type_is_there}}
ORDER BY h.finished_at, h.job_id
LIMIT $4::integer
FOR UPDATE OF h SKIP LOCKED
