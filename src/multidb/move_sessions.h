// The real collaborators of ShardMover (shard_mover.h) in `tocsin shard`: databases, sessions with PostgreSQL, and the
// machine's clock. The simulator replaces them.
#pragma once

#include <vector>

#include "multidb/open_databases.h"
#include "multidb/shard_mover.h"

namespace tocsin {

// Ids, names and URLs of the databases.
std::vector<MoveDatabase> move_databases(const std::vector<OpenDatabase>& databases);
// Returns a function that opens a session with one of `databases`. REQUIRES: it is called with an id of these. A
// session connects at its first call, so opening it does not fail.
OpenMoveSession move_sessions(std::vector<OpenDatabase> databases);

// The steady clock; sleep() blocks the calling thread. Thread: any.
class ThreadClock final : public PacingClock {
 public:
  MonoTime now() const override;
  void sleep(Duration time) override;
};

}  // namespace tocsin
