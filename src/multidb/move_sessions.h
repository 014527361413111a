// The sessions with PostgreSQL and the clock that ShardMover uses in `tocsin shard`; the simulator has its own.
#pragma once

#include <vector>

#include "multidb/open_databases.h"
#include "multidb/shard_mover.h"

namespace tocsin {

// Both are arguments of ShardMover.
std::vector<MoveDatabase> move_databases(const std::vector<OpenDatabase>& databases);
OpenMoveSession move_sessions(std::vector<OpenDatabase> databases);

// Sleeps in the thread that calls it. Thread: any.
class ThreadClock final : public PacingClock {
 public:
  MonoTime now() const override;
  void sleep(Duration time) override;
};

}  // namespace tocsin
