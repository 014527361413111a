// PgPermitStore: stores in the control database which node holds how many permits of each limit. Implements
// PermitStore, which explains permits, grants and each call (ports/permit_store.h). Class Permits (node/permits.h)
// calls return_all(), its PermitRenewer the rest. Thread: the one that owns the session.
#pragma once

#include "ports/permit_store.h"
#include "postgres/session.h"

namespace tocsin {

class PgPermitStore final : public PermitStore {
 public:
  // Both must outlive the store. `clock`: the node's, for PermitReply::asked and answered.
  PgPermitStore(Session& session, const Clock& clock) : session_(session), clock_(clock) {}

  Result<PermitReply> renew(const PermitBeat& beat) override;
  Result<int> take_over(NodeId node, std::int64_t beat_number, TypeId type, int most) override;
  Status return_all(NodeId node) override;

 private:
  Session& session_;
  const Clock& clock_;
};

}  // namespace tocsin
