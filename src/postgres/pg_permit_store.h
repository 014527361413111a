// PgPermitStore: stores in the control database how many permits (parts of a type's limits, lent to nodes) each node
// holds. Implements PermitStore, which explains permits, grants and each call (ports/permit_store.h). Class Permits
// (node/permits.h) calls return_all(); its PermitRenewer makes the other calls. Thread: the one that owns the session.
#pragma once

#include "ports/permit_store.h"
#include "postgres/session.h"

namespace tocsin {

class PgPermitStore final : public PermitStore {
 public:
  // Both must outlive the store. `clock`: the local clock, for PermitReply::asked and answered.
  PgPermitStore(Session& session, const Clock& clock) : session_(session), clock_(clock) {}

  Result<PermitReply> renew(const PermitBeat& beat) override;
  Result<int> take_over(NodeId node, std::int64_t beat_number, TypeId type, int most) override;
  Status return_all(NodeId node) override;

 private:
  Session& session_;
  const Clock& clock_;
};

}  // namespace tocsin
