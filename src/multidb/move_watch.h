// MoveWatch: the stage that watches over moves of shards between databases (ADR 0021). Once a second it reads which
// shards are moving. During a move the shard is write-frozen for a moment: its rows do not change. The driver (the
// command that moves the shard) announces for how long. If a freeze lasts longer, MoveWatch makes the shard writable
// again: in the source database if the shard map still names it, otherwise in the target. The next command continues
// the move. Membership (node/membership.h) of every node with several databases has one; if several nodes end a freeze,
// the first succeeds.
//
// A step makes several calls: in the control database, and in the database where a freeze ends. Failures are reported
// to `events`, and tried again in a later step. Thread: owner only (its stage's), except under_way() (any).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/latest.h"
#include "base/stage.h"
#include "multidb/open_databases.h"
#include "ports/event.h"
#include "postgres/pg_move_store.h"

namespace tocsin {

// Ends the freeze of an overdue move. MoveWatch and the simulator call it. `store_at`: the store of a database;
// nullptr: this node was not started with that database.
//  - True: the shard is writable again.
//  - False: another process ends the freeze, the driver extended it, the shard has switched to the target since `move`
//    was read, or this node does not have the database.
//  - Error: of a store call; safe to repeat.
Result<bool> end_freeze(ShardMove move, const std::function<MoveStore*(DatabaseId)>& store_at);

class MoveWatch final : public Stage {
 public:
  // `databases`: all of this node's, the control database first.
  MoveWatch(const std::vector<OpenDatabase>& databases, const Clock& clock, EventSink& events);

  const char* name() const override { return "moves"; }
  MonoTime step(MonoTime now) override;

  // The moves under way, by shard, as read last. A failed read leaves them unchanged.
  std::shared_ptr<const std::vector<ShardMove>> under_way() const { return under_way_.get(); }

 private:
  const Clock& clock_;
  EventSink& events_;
  std::map<DatabaseId, Session> sessions_;
  std::map<DatabaseId, PgMoveStore> stores_;
  Latest<std::vector<ShardMove>> under_way_{std::make_shared<const std::vector<ShardMove>>()};
};

}  // namespace tocsin
