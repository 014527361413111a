// MemberStore on PostgreSQL: membership and shard map, tables of the control database.
// Thread: owner only.
#pragma once

#include "ports/member_store.h"
#include "postgres/session.h"

namespace tocsin {

class PgMemberStore final : public MemberStore {
 public:
  PgMemberStore(Session& session, const Clock& clock) : session_(session), clock_(clock) {}

  Result<BeatReply> beat(const Beat& beat) override;
  Result<bool> replace_map(std::int64_t known, const std::vector<NodeId>& owners) override;
  Status leave(NodeId id) override;

 private:
  Session& session_;
  const Clock& clock_;
};

}  // namespace tocsin
