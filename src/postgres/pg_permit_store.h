// PermitStore on PostgreSQL: the permits of types with limits, lent to nodes, in a table of the control database. The
// permit renewer of the node calls it. Thread: that of the session.
#pragma once

#include "ports/permit_store.h"
#include "postgres/session.h"

namespace tocsin {

class PgPermitStore final : public PermitStore {
 public:
  // Both must outlive the store. `clock`: for the local times in PermitReply.
  PgPermitStore(Session& session, const Clock& clock) : session_(session), clock_(clock) {}

  Result<PermitReply> renew(const PermitBeat& beat) override;
  Result<int> take_over(NodeId node, std::int64_t number, TypeId type, int n) override;
  Status return_all(NodeId node) override;

 private:
  Session& session_;
  const Clock& clock_;
};

}  // namespace tocsin
