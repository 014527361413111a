// The stores of a shard move (ADR 0021), one per database; ShardCopy does the copying. ShardMover drives a move; nodes
// use MoveStore to end the freeze of a driver that died. Implemented by PgMoveStore and PgShardCopy (src/postgres) and
// by FakeMoves (tests/support).
//
// Every change checks, in its transaction, that `driver` still drives the move; every verb may be repeated. Before the
// driver freezes a shard it writes the end of the freeze (`thaw_at`) to the control database, and extends it later. A
// node that finds it past becomes the driver by changing the row that the flip of the map also changes, so only one of
// the two happens. Thread: owner only.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ports/member_store.h"

namespace tocsin {

struct ShardMove {
  enum class State { copying, switching, switched, aborting };
  Shard shard = 0;
  DatabaseId source = 0, target = 0;
  std::int64_t driver = 0;
  State state = State::copying;
  bool may_stand_still = false;  // the shard may be write-frozen: no later step has recorded that it is writable
  bool is_overdue = false;       // past the end of its freeze
};
inline const char* to_string(ShardMove::State state) {
  constexpr const char* kNames[] = {"copying", "switching", "switched", "aborting"};
  return kNames[static_cast<int>(state)];
}

// How long a freeze lasts unless its driver extends it.
inline constexpr std::chrono::milliseconds kThawLease{2000};

class MoveStore {
 public:
  virtual ~MoveStore() = default;

  // ---- control database

  virtual Result<std::vector<ShardMove>> list() = 0;
  // Makes the caller the driver of the shard's move, and begins the move unless it is under way. Without a target: only
  // a move under way. `driver`: the number that the caller has already. nullopt: nothing to do. Error invalid: the
  // shard moves to another database, or another driver has the move.
  virtual Result<std::optional<ShardMove>> take(Shard shard, std::optional<DatabaseId> target,
                                                std::optional<std::int64_t> driver) = 0;
  // Makes the caller the driver of an overdue move and ends `switching`: the flip of the old driver fails from now on.
  // False: another process was faster, or the driver extended the freeze.
  virtual Result<bool> take_over(ShardMove& move) = 0;
  // Error superseded, here and in every call that writes: another driver has the move. `switching`: the shard may be
  // frozen from now on.
  virtual Status set_state(ShardMove& move, ShardMove::State state) = 0;
  // Extends the freeze.
  virtual Status keep(const ShardMove& move) = 0;
  // Records that the shard is writable.
  virtual Status goes_on(ShardMove& move) = 0;
  // Switches the shard to the target: writes the target into the shard map, and the state `switched`.
  virtual Status flip(ShardMove& move) = 0;
  // Names of the live nodes that were not started with this database.
  virtual Result<std::vector<std::string>> nodes_without(DatabaseId database_id) = 0;
  virtual Result<std::int64_t> map_version() = 0;
  // Names of the live nodes that may work with an older map.
  virtual Result<std::vector<std::string>> nodes_behind(std::int64_t version) = 0;
  virtual Status end(const ShardMove& move) = 0;
  // Records a move again that the control database lost in a failover, as another database remembers it; its state
  // follows from the shard map. Error invalid: the shard lives in neither of the two databases.
  virtual Status recall(const ShardMove& lost) = 0;

  // ---- source and target

  // The move of this shard as a database other than the control database remembers it.
  virtual Result<std::optional<ShardMove>> noted(Shard shard) = 0;

  // Ends the sessions of earlier drivers, so none of their statements is still running. REQUIRES: all drivers
  // of the move have sessions of this name.
  virtual Status end_others() = 0;
  // Records the driver here.
  virtual Status note(const ShardMove& move) = 0;
  // Records the driver after take_over(), only where one is recorded already: the move may have ended meanwhile.
  virtual Status note_successor(const ShardMove& move) = 0;
  virtual Status forget(const ShardMove& move) = 0;
  // The tables of jobs, live ones and history.
  virtual Result<std::vector<std::string>> tables(Shard shard) = 0;
  // Deletes the shard's rows of a table. REQUIRES: the shard does not live here, and no subscription replicates them.
  virtual Result<std::int64_t> delete_rows(const ShardMove& move, const std::string& table) = 0;

  // ---- source

  // Write-freezes the shard: after the commit none of its rows changes here. Error conflict: an open transaction that
  // has written blocks it.
  virtual Status freeze(const ShardMove& move) = 0;
  // Ends the freeze: the shard lives here and changes again. Error conflict: as for freeze.
  virtual Status unfreeze(const ShardMove& move) = 0;
  // Removes the freeze after the shard's last row was deleted.
  virtual Status thaw(const ShardMove& move) = 0;
  virtual Result<std::string> take_counts(const ShardMove& move) = 0;  // as JSON, for add_counts
  // Empties the counts after they were added at the target, so that they cannot be added twice.
  virtual Status empty_counts(const ShardMove& move) = 0;

  // ---- target

  // Takes and releases the lock of open(). Error conflict: another transaction that uses jobs holds it.
  virtual Status can_open(const ShardMove& move) = 0;
  virtual Status open(const ShardMove& move) = 0;
  virtual Status add_counts(const ShardMove& move, const std::string& counts) = 0;
};

// The copying of a moving shard: a publication of its rows and a slot at the source, a subscription at the target.
//
// Every call that writes checks the driver of the move, as MoveStore's do, except three that cannot be in a
// transaction: making a slot, dropping slots, and refreshing the list of tables. MoveStore::end_others() ends those.
class ShardCopy {
 public:
  virtual ~ShardCopy() = default;

  // ---- source

  // Error invalid: the server's wal_level is not logical. Waits until every open transaction that has written ends.
  virtual Status publish(const ShardMove& move) = 0;
  // Whether all tables of jobs are published.
  virtual Result<bool> publishes_all(const ShardMove& move) = 0;
  virtual Status unpublish(const ShardMove& move) = 0;
  virtual Result<std::string> slot(const ShardMove& move) = 0;  // its name
  // Ends the sessions that use the slots, and drops them. `of_copies`: from stop_workers(). Error conflict: in use.
  virtual Status drop_slots(const ShardMove& move, const std::string& of_copies) = 0;
  // Whether all these slots are there.
  virtual Result<bool> has_slots(const std::vector<std::string>& names) = 0;
  // The source's current position in its log.
  virtual Result<std::string> position() = 0;
  // Bytes of the log that the target has not confirmed up to `position`; 0: it has all of it.
  virtual Result<std::int64_t> behind(const ShardMove& move, const std::string& position) = 0;

  // ---- target

  // Creates the history tables that the source has.
  virtual Status make_history(const std::vector<std::string>& tables) = 0;
  // Creates the subscription, or updates its connection. `source`: the connection string by which this server reaches
  // the source. Error invalid: it reaches none, or another database.
  virtual Status subscribe(const ShardMove& move, const std::string& source, const std::string& slot) = 0;
  // A problem of the subscription that an operator must fix; empty: none.
  virtual Result<std::string> why_no_worker(const ShardMove& move) = 0;
  // How often its workers have failed; decreases only when the server crashes.
  virtual Result<std::int64_t> failures(const ShardMove& move) = 0;
  // The number of tables whose copy is complete, and of all tables.
  virtual Result<std::pair<int, int>> copied(const ShardMove& move) = 0;
  // The slots of tables that are copied but have not caught up. A source that crashed at the wrong moment has dropped
  // such a slot without the target's knowledge; that table never catches up.
  virtual Result<std::vector<std::string>> slots_needed(const ShardMove& move) = 0;
  // Disables the subscription and ends its workers. Returns a LIKE pattern of the slots that they may have left at the
  // source; empty: none. Error conflict: they do not end.
  virtual Result<std::string> stop_workers(const ShardMove& move) = 0;
  // Drops the subscription without contacting the source. REQUIRES: stop_workers().
  virtual Status unsubscribe(const ShardMove& move) = 0;
};

}  // namespace tocsin
