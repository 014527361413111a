#include "postgres/pg_member_store.h"

#include "postgres/text.h"

namespace tocsin {
namespace {

// Members and map are of one snapshot: a map that is newer than the members would look wrong to this node, and be
// "corrected". Its own row is not in that snapshot, so it comes from RETURNING. Whether a session is still there is
// asked by pid and start, for pids are used again; a start that may not be seen says nothing. A beat need not survive a
// crash of the database: the next one is a second away, and it does not wait for the disk.
std::string beat_statement() {
  return R"(
WITH t AS MATERIALIZED (SELECT clock_timestamp() AS now, set_config('synchronous_commit', 'off', true)),
     s AS MATERIALIZED (SELECT pid, backend_start FROM pg_stat_get_activity(pg_backend_pid())),
     own AS (
       INSERT INTO tocsin.node AS n (node_id, name, state, version, heartbeat_at, scanned_at, backend_pid, backend_start)
       SELECT $1, $2, $3, $4, t.now, t.now - $5::bigint * interval '1 microsecond', s.pid, s.backend_start FROM t, s
       ON CONFLICT (node_id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at, state = excluded.state,
         scanned_at = excluded.scanned_at, backend_pid = excluded.backend_pid, backend_start = excluded.backend_start
       RETURNING n.*)
SELECT m.node_id, m.name, m.version, m.state = 'draining', m.heartbeat_at,
       greatest(0, extract(epoch FROM t.now - m.heartbeat_at) * 1000000)::bigint,
       CASE WHEN m.scanned_at IS NOT NULL
            THEN greatest(0, extract(epoch FROM t.now - m.scanned_at) * 1000000)::bigint END,
       EXISTS (SELECT FROM pg_stat_get_activity(m.backend_pid) a WHERE coalesce(a.backend_start = m.backend_start, true)),
       p.version, p.owners, p.places
FROM t CROSS JOIN (SELECT * FROM own UNION ALL SELECT * FROM tocsin.node WHERE node_id <> $1) m
     LEFT JOIN tocsin.shard_map p ON m.node_id = $1 AND p.version <> $6::bigint
ORDER BY m.node_id)";
}

std::string replace_statement() {
  return "UPDATE tocsin.shard_map SET version = version + 1, owners = $2::bigint[] WHERE version = $1::bigint";
}

}  // namespace

Result<BeatReply> PgMemberStore::beat(const Beat& beat) {
  return session_.write<BeatReply>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    const Statement& statement = session_.prepared("beat", beat_statement);
    BeatReply reply;
    reply.connection = session_.connections();
    reply.asked = clock_.now();
    const auto scan_age = beat.scan_age ? std::optional(beat.scan_age->count()) : std::nullopt;
    const auto rows = exec(tx, statement, beat.id, beat.name, beat.is_draining ? "draining" : "active", beat.version,
                           scan_age, beat.known_map);
    for (const auto& row : rows) {
      Member& member = reply.members.emplace_back();
      member.id = row[0].as<NodeId>();
      member.name = row[1].c_str();
      member.version = row[2].c_str();
      member.is_draining = row[3].as<bool>();
      member.heartbeat_at = wall_time_from_pg({row[4].c_str(), row[4].size()});
      member.heartbeat_age = Duration(row[5].as<std::int64_t>());
      if (!row[6].is_null()) member.scan_age = Duration(row[6].as<std::int64_t>());
      member.is_connected = row[7].as<bool>();
      if (!row[8].is_null()) {
        reply.map = ShardMap{row[8].as<std::int64_t>(), numbers_from_array<NodeId>({row[9].c_str(), row[9].size()}),
                             numbers_from_array<Place>({row[10].c_str(), row[10].size()})};
      }
    }
    if (beat.wakes_others) tx.exec0("NOTIFY tocsin_member");
    reply.answered = clock_.now();
    return reply;
  });
}

Result<bool> PgMemberStore::replace_map(std::int64_t known, const std::vector<NodeId>& owners) {
  PgArray array;
  for (const NodeId owner : owners) array.add(owner);
  return session_.write<bool>([&](pqxx::connection& connection) {
    const Statement& replace = session_.prepared("replace_map", replace_statement);
    pqxx::work tx(connection);
    const bool is_replaced = exec(tx, replace, known, array.take()).affected_rows() == 1;
    if (is_replaced) tx.exec0("NOTIFY tocsin_member");
    tx.commit();
    return is_replaced;
  });
}

Status PgMemberStore::leave(NodeId id) {
  return session_.write<Unit>([&](pqxx::connection& connection) {
    pqxx::work tx(connection);
    tx.exec_params0("DELETE FROM tocsin.node WHERE node_id = $1", id);
    tx.exec0("NOTIFY tocsin_member");
    tx.commit();
    return Unit{};
  });
}

}  // namespace tocsin
