#include "postgres/pg_permit_store.h"

#include "postgres/sql_text.h"
#include "postgres/values.h"

namespace tocsin {

Result<PermitReply> PgPermitStore::renew(const PermitBeat& beat) {
  PgArray types, kinds, helds, wanteds, needs, useds, leases;
  for (const PermitRequest& request : beat.requests) {
    types.add(request.type_id);
    kinds.add(static_cast<std::int64_t>(request.limit));
    helds.add(request.held);
    wanteds.add(request.wanted);
    needs.add(request.need);
    useds.add(request.used);
    leases.add(request.lease.count());
  }
  return session_.write<PermitReply>([&](pqxx::nontransaction& tx) {
    const auto& name = session_.prepared("renew_permits");
    PermitReply reply;
    reply.asked = clock_.now();
    const auto rows = exec(tx, name, beat.node, beat.number, beat.ttl.count(), types.literal(), kinds.literal(),
                           helds.literal(), wanteds.literal(), needs.literal(), useds.literal(), leases.literal());
    reply.answered = clock_.now();
    reply.items.resize(beat.requests.size());
    for (const auto& row : rows) {
      PermitReply::Item& item = reply.items.at(row[0].as<std::size_t>() - 1);
      item.total = row[1].as<int>();
      reply.db_now = time_of(row[7]);
      if (row[2].is_null()) continue;  // the type is gone, and no node had a grant
      item.shares.push_back(
          {row[2].as<NodeId>(), row[3].as<int>(), row[4].as<int>(), row[5].as<int>(), row[6].as<bool>()});
    }
    return reply;
  });
}

Result<int> PgPermitStore::take_over(NodeId node, std::int64_t number, TypeId type, int n) {
  return session_.transact<int>([&](pqxx::work& tx) {
    // As in renew_permits: the next statement has a snapshot from after the lock.
    tx.exec_params("SELECT FROM tocsin.biz_type t WHERE t.type_id = $1 FOR NO KEY UPDATE", type);
    const auto row = tx.exec_params1(sql::statement("take_over_permits"), type, node, n, number);
    return row[0].as<int>();
  });
}

Status PgPermitStore::return_all(NodeId node) {
  return session_.write(
      [&](pqxx::nontransaction& tx) { tx.exec_params0("DELETE FROM tocsin.permit WHERE node_id = $1", node); });
}

}  // namespace tocsin
