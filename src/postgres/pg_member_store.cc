#include "postgres/pg_member_store.h"

#include <algorithm>

#include "postgres/values.h"

namespace tocsin {
namespace {

// Database ids and ages in microseconds (-1: none). A node of an older version reports neither.
std::vector<ScannedDatabase> scanned_from(const pqxx::field& database_ids, const pqxx::field& ages) {
  std::vector<ScannedDatabase> scanned;
  if (database_ids.is_null() || ages.is_null()) return scanned;
  const auto of = numbers_from_array<DatabaseId>(text_of(database_ids));
  const auto age = numbers_from_array<std::int64_t>(text_of(ages));
  for (std::size_t i = 0; i < std::min(of.size(), age.size()); ++i)
    scanned.push_back({of[i], age[i] < 0 ? std::nullopt : std::optional(Duration(age[i]))});
  return scanned;
}

}  // namespace

Result<BeatReply> PgMemberStore::beat(const Beat& beat) {
  return session_.write<BeatReply>([&](pqxx::nontransaction& tx) {
    const Statement& statement = session_.prepared("beat");
    BeatReply reply;
    reply.connection = session_.connections();
    reply.asked = clock_.now();
    PgArray database_ids, ages;
    for (const ScannedDatabase& each : beat.scanned) {
      database_ids.add(static_cast<std::int64_t>(each.database_id));
      ages.add(each.age ? std::optional(each.age->count()) : std::nullopt);
    }
    const auto rows = exec(tx, statement, beat.id, beat.name, beat.is_draining ? "draining" : "active", beat.version,
                           database_ids.literal(), ages.literal(), beat.used_map, beat.known_map);
    for (const auto& row : rows) {
      Member& member = reply.members.emplace_back();
      member.id = row[0].as<NodeId>();
      member.name = row[1].c_str();
      member.version = row[2].c_str();
      member.is_draining = row[3].as<bool>();
      member.heartbeat_at = time_of(row[4]);
      member.heartbeat_age = Duration(row[5].as<std::int64_t>());
      member.scanned = scanned_from(row[6], row[7]);
      member.is_connected = row[8].as<bool>();
      if (!row[9].is_null()) {
        reply.map = ShardMap{row[9].as<std::int64_t>(), numbers_from_array<NodeId>(text_of(row[10])),
                             numbers_from_array<DatabaseId>(text_of(row[11]))};
      }
    }
    if (beat.wakes_others) tx.exec0("NOTIFY tocsin_member");
    reply.answered = clock_.now();
    return reply;
  });
}

Result<bool> PgMemberStore::replace_map(std::int64_t known, const std::vector<NodeId>& owners) {
  return session_.transact<bool>([&](pqxx::work& tx) {
    const bool is_replaced = exec(tx, session_.prepared("replace_map"), known, array_of(owners)).affected_rows() == 1;
    if (is_replaced) tx.exec0("NOTIFY tocsin_member");
    return is_replaced;
  });
}

Status PgMemberStore::leave(NodeId id) {
  return session_.transact([&](pqxx::work& tx) {
    tx.exec_params0("DELETE FROM tocsin.node WHERE node_id = $1", id);
    tx.exec0("NOTIFY tocsin_member");
  });
}

}  // namespace tocsin
