// PermitStore on PostgreSQL: the permits of types with limits, in a table of the control database.
// Thread: owner only.
#pragma once

#include "ports/permit_store.h"
#include "postgres/session.h"

namespace tocsin {

class PgPermitStore final : public PermitStore {
 public:
  PgPermitStore(Session& session, const Clock& clock) : session_(session), clock_(clock) {}

  Result<PermitReply> renew(const PermitBeat& beat) override;
  Result<int> take_over(NodeId node, std::int64_t number, TypeId type, int n) override;
  Status return_all(NodeId node) override;

 private:
  Session& session_;
  const Clock& clock_;
};

}  // namespace tocsin
