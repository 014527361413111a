#include "postgres/pg_member_store.h"

#include <algorithm>

#include "postgres/text.h"

namespace tocsin {
namespace {

// Members and map are of one snapshot: a map that is newer than the members would look wrong to this node, and be
// "corrected". Its own row is not in that snapshot, so it comes from RETURNING. Whether a session is still there is
// asked by pid and start, for pids are used again; a start that may not be seen says nothing. A beat need not survive a
// crash of the database: the next one is a second or two away, and it does not wait for the disk.
std::string beat_statement() {
  return R"(
WITH t AS MATERIALIZED (SELECT clock_timestamp() AS now, set_config('synchronous_commit', 'off', true)),
     s AS MATERIALIZED (SELECT pid, backend_start FROM pg_stat_get_activity(pg_backend_pid())),
     own AS (
       INSERT INTO tocsin.node AS n
         (node_id, name, state, version, heartbeat_at, backend_pid, backend_start, places, scanned, map_version)
       SELECT $1, $2, $3, $4, t.now, s.pid, s.backend_start, $5::smallint[],
              ARRAY(SELECT t.now - age * interval '1 microsecond' FROM unnest($6::bigint[]) WITH ORDINALITY a (age, i)
                    ORDER BY i),
              nullif($7::bigint, -1) FROM t, s
       ON CONFLICT (node_id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at, state = excluded.state,
         backend_pid = excluded.backend_pid, backend_start = excluded.backend_start, places = excluded.places,
         scanned = excluded.scanned, map_version = excluded.map_version
       RETURNING n.*)
SELECT m.node_id, m.name, m.version, m.state = 'draining', m.heartbeat_at,
       greatest(0, extract(epoch FROM t.now - m.heartbeat_at) * 1000000)::bigint,
       m.places, ARRAY(SELECT CASE WHEN at IS NULL THEN -1
                              ELSE greatest(0, extract(epoch FROM t.now - at) * 1000000)::bigint END
                       FROM unnest(m.scanned) WITH ORDINALITY a (at, i) ORDER BY i),
       EXISTS (SELECT FROM pg_stat_get_activity(m.backend_pid) a WHERE coalesce(a.backend_start = m.backend_start, true)),
       p.version, p.owners, p.places
FROM t CROSS JOIN (SELECT * FROM own UNION ALL SELECT * FROM tocsin.node WHERE node_id <> $1) m
     LEFT JOIN tocsin.shard_map p ON m.node_id = $1 AND p.version <> $8::bigint
ORDER BY m.node_id)";
}

std::string replace_statement() {
  return "UPDATE tocsin.shard_map SET version = version + 1, owners = $2::bigint[] WHERE version = $1::bigint";
}

// Places and microseconds, -1: none. A node of an older version tells neither.
std::vector<ScannedPlace> scanned_from(const pqxx::field& places, const pqxx::field& ages) {
  std::vector<ScannedPlace> scanned;
  if (places.is_null() || ages.is_null()) return scanned;
  const auto of = numbers_from_array<Place>({places.c_str(), places.size()});
  const auto age = numbers_from_array<std::int64_t>({ages.c_str(), ages.size()});
  for (std::size_t i = 0; i < std::min(of.size(), age.size()); ++i)
    scanned.push_back({of[i], age[i] < 0 ? std::nullopt : std::optional(Duration(age[i]))});
  return scanned;
}

}  // namespace

Result<BeatReply> PgMemberStore::beat(const Beat& beat) {
  return session_.write<BeatReply>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    const Statement& statement = session_.prepared("beat", beat_statement);
    BeatReply reply;
    reply.connection = session_.connections();
    reply.asked = clock_.now();
    PgArray places, ages;
    for (const ScannedPlace& each : beat.scanned) {
      places.add(static_cast<std::int64_t>(each.place));
      ages.add(each.age ? std::optional(each.age->count()) : std::nullopt);
    }
    const auto rows = exec(tx, statement, beat.id, beat.name, beat.is_draining ? "draining" : "active", beat.version,
                           places.literal(), ages.literal(), beat.used_map, beat.known_map);
    for (const auto& row : rows) {
      Member& member = reply.members.emplace_back();
      member.id = row[0].as<NodeId>();
      member.name = row[1].c_str();
      member.version = row[2].c_str();
      member.is_draining = row[3].as<bool>();
      member.heartbeat_at = wall_time_from_pg({row[4].c_str(), row[4].size()});
      member.heartbeat_age = Duration(row[5].as<std::int64_t>());
      member.scanned = scanned_from(row[6], row[7]);
      member.is_connected = row[8].as<bool>();
      if (!row[9].is_null()) {
        reply.map = ShardMap{row[9].as<std::int64_t>(), numbers_from_array<NodeId>({row[10].c_str(), row[10].size()}),
                             numbers_from_array<Place>({row[11].c_str(), row[11].size()})};
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
    const bool is_replaced = exec(tx, replace, known, array.literal()).affected_rows() == 1;
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
