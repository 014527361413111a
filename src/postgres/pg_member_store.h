// PgMemberStore: reads and writes heartbeats and the shard map, tables of the control database. Implements MemberStore,
// which says what each call does, its units and Errors (ports/member_store.h). Membership has two, for its heartbeat
// and its shard owner. Thread: the one that owns the session.
#pragma once

#include "ports/member_store.h"
#include "postgres/session.h"

namespace tocsin {

class PgMemberStore final : public MemberStore {
 public:
  // Both must outlive the store. `clock`: for the local times in BeatReply.
  PgMemberStore(Session& session, const Clock& clock) : session_(session), clock_(clock) {}

  Result<BeatReply> beat(const Beat& beat) override;
  Result<bool> replace_map(std::int64_t known, const std::vector<NodeId>& owners) override;
  Status leave(NodeId id) override;

 private:
  Session& session_;
  const Clock& clock_;
};

}  // namespace tocsin
