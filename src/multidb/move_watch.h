// MoveWatch: the stage that watches over shard moves (ADR 0021). Once a second it reads which shards are moving. A
// shard that is write-frozen for longer than its driver (the command that moves it) announced becomes writable again:
// in the source if the shard map still names it, else in the target. The next command finishes the move. Every node
// with several databases has one, in Membership; of several nodes that end a freeze the first succeeds.
//
// A step makes several calls, in the control database and in the one where a freeze ends; what fails is reported to
// `events` and tried again in a later one. Thread: owner only, except under_way() (any).
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

// Ends the freeze of an overdue move; the simulator calls it, too. `store_at`: returns nullptr for a database that this
// node was not started with. True: the shard is writable again. False: another process ends the freeze, the driver
// extended it, the shard has switched since `move` was read, or this node does not have the database. Error: of a store
// call; safe to repeat.
Result<bool> end_freeze(ShardMove move, const std::function<MoveStore*(DatabaseId)>& store_at);

class MoveWatch final : public Stage {
 public:
  // `databases`: of this node, the control database first.
  MoveWatch(const std::vector<OpenDatabase>& databases, const Clock& clock, EventSink& events);

  const char* name() const override { return "moves"; }
  MonoTime step(MonoTime now) override;

  // The moves under way by shard, as last read; a failed read leaves them as they were.
  std::shared_ptr<const std::vector<ShardMove>> under_way() const { return under_way_.get(); }

 private:
  const Clock& clock_;
  EventSink& events_;
  std::map<DatabaseId, Session> sessions_;
  std::map<DatabaseId, PgMoveStore> stores_;
  Latest<std::vector<ShardMove>> under_way_{std::make_shared<const std::vector<ShardMove>>()};
};

}  // namespace tocsin
