// The stores of a shard move (ADR 0021): a shard goes from its source database to its target while it is in use. Each
// database of the installation has a MoveStore, and a ShardCopy that copies the rows. multidb/shard_mover drives a
// move; nodes use MoveStore to end the freeze of a driver that died. Implemented by PgMoveStore and PgShardCopy
// (src/postgres) and by FakeMoves (tests/support).
//
// Every call that takes a move and writes checks in its transaction that `move.driver` still drives the move (else
// Error superseded), and may be repeated. Before the driver write-freezes a shard (its rows do not change until the
// thaw), it writes the end of the freeze (`thaw_at`) to the control database, and extends it later. A node that finds
// this time past becomes the driver by changing the row that flip() also changes, so only one of the two happens.
// Calls that take a ShardMove& update it to what they have stored. Thread: owner only.
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
  std::int64_t driver = 0;  // number of the process that drives it; each driver's is larger than the one before
  State state = State::copying;
  bool may_be_frozen = false;  // the shard may be write-frozen: set_writable() has not been called since
  bool is_overdue = false;     // past the end of its freeze
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

  // All moves under way.
  virtual Result<std::vector<ShardMove>> list() = 0;
  // Makes the caller the driver of the shard's move, and begins the move unless it is under way. Without a target: only
  // a move under way. `driver`: the number that the caller has from an earlier take(). nullopt: the shard lives in the
  // target already, or no move is under way. Error invalid: the shard moves to another database, or another command
  // drives the move.
  virtual Result<std::optional<ShardMove>> take(Shard shard, std::optional<DatabaseId> target,
                                                std::optional<std::int64_t> driver) = 0;
  // Makes the caller the driver of an overdue move and ends `switching`: the flip of the old driver fails from now on.
  // False: another process was faster, or the driver extended the freeze.
  virtual Result<bool> take_over(ShardMove& move) = 0;
  // Error superseded: another driver has the move, or it is in another state than move.state. From `switching` on the
  // shard may be frozen.
  virtual Status set_state(ShardMove& move, ShardMove::State state) = 0;
  // Extends the freeze to kThawLease from now.
  virtual Status keep(const ShardMove& move) = 0;
  // Records that the shard is not frozen. REQUIRES: it was thawed.
  virtual Status set_writable(ShardMove& move) = 0;
  // Writes the target into the shard map, and the state `switched`, in one transaction: the shard lives there from now
  // on.
  virtual Status flip(ShardMove& move) = 0;
  // Names of the live nodes that were not started with this database.
  virtual Result<std::vector<std::string>> nodes_without(DatabaseId database_id) = 0;
  virtual Result<std::int64_t> map_version() = 0;  // of the shard map
  // Names of the live nodes that may work with an older map.
  virtual Result<std::vector<std::string>> nodes_behind(std::int64_t version) = 0;
  // Deletes the record of the move.
  virtual Status end(const ShardMove& move) = 0;
  // Records a move again that the control database lost in a failover. `lost`: as noted() in another database. Its
  // state follows from the shard map. Error invalid: the shard lives in neither of the two databases.
  virtual Status recall(const ShardMove& lost) = 0;

  // ---- source and target: each has a record of its own of the move

  // The move of this shard as this database has recorded it; nullopt: not at all.
  virtual Result<std::optional<ShardMove>> noted(Shard shard) = 0;

  // Ends the sessions of earlier drivers in this database, so that none of their statements is still running. REQUIRES:
  // all drivers of the move give their sessions the same application name. Error conflict: a session does not end.
  virtual Status end_others() = 0;
  // Records the move with its driver here. Error superseded: a later driver is recorded.
  virtual Status note(const ShardMove& move) = 0;
  // Records the driver after take_over(), only where the move is recorded already. Error superseded: it is not (the
  // move may have ended), or has a later driver.
  virtual Status note_successor(const ShardMove& move) = 0;
  // Deletes this database's record of the move, unless a later driver is recorded.
  virtual Status forget(const ShardMove& move) = 0;
  // The tables that hold rows of the shard: live jobs, history, and relayed outbox entries.
  virtual Result<std::vector<std::string>> tables(Shard shard) = 0;
  // Deletes the shard's rows of a table; returns how many. REQUIRES: the shard does not live here, and no subscription
  // replicates them.
  virtual Result<std::int64_t> delete_rows(const ShardMove& move, const std::string& table) = 0;

  // ---- source

  // Write-freezes the shard: after the commit none of its rows changes here. Error conflict: an open transaction that
  // uses jobs held it up for too long (0.3 s).
  virtual Status freeze(const ShardMove& move) = 0;
  // Ends the freeze of a move that does not happen: the shard lives here again. Error conflict: as for freeze.
  virtual Status unfreeze(const ShardMove& move) = 0;
  // Removes the freeze after the move, when the shard's last row was deleted here.
  virtual Status thaw(const ShardMove& move) = 0;
  // Subtracts the shard's jobs from the counts of this database, once, and returns them as JSON for add_counts().
  virtual Result<std::string> take_counts(const ShardMove& move) = 0;
  // Forgets the counts that take_counts() returned, after they were added at the target.
  virtual Status empty_counts(const ShardMove& move) = 0;

  // ---- target

  // Whether open() would get its lock now: takes and releases it. Error conflict: a transaction that uses jobs holds
  // it.
  virtual Status can_open(const ShardMove& move) = 0;
  // Lets the shard's jobs be created and changed here. Error conflict: as for can_open.
  virtual Status open(const ShardMove& move) = 0;
  // Adds what take_counts() returned to the counts of this database, once.
  virtual Status add_counts(const ShardMove& move, const std::string& counts) = 0;
};

// ShardCopy copies a moving shard by logical replication: a publication of its rows and a replication slot at the
// source, a subscription with its workers at the target.
//
// Every call that writes checks the driver of the move, as MoveStore's do, except steps that cannot be in a
// transaction: creating and dropping slots, refreshing the list of tables, ending workers, and creating history tables.
// For those of an earlier driver there is MoveStore::end_others().
class ShardCopy {
 public:
  virtual ~ShardCopy() = default;

  // ---- source

  // Creates the publication and the slot. Waits until every open transaction that has written ends. Error invalid: the
  // server's wal_level is not logical.
  virtual Status publish(const ShardMove& move) = 0;
  // Whether all tables of jobs are published.
  virtual Result<bool> publishes_all(const ShardMove& move) = 0;
  virtual Status unpublish(const ShardMove& move) = 0;          // drops the publication
  virtual Result<std::string> slot(const ShardMove& move) = 0;  // name of the slot
  // Ends the sessions that use the move's slots, and drops them. `of_copies`: LIKE pattern from stop_workers(). Error
  // conflict: one is still in use.
  virtual Status drop_slots(const ShardMove& move, const std::string& of_copies) = 0;
  // Whether all these slots are there.
  virtual Result<bool> has_slots(const std::vector<std::string>& names) = 0;
  // The source's current position in its write-ahead log.
  virtual Result<std::string> position() = 0;
  // Bytes of the log up to `position` that the target has not confirmed; 0: it has all of it. Error invalid: the slot
  // is gone.
  virtual Result<std::int64_t> behind(const ShardMove& move, const std::string& position) = 0;

  // ---- target

  // Creates the history tables that the source has.
  virtual Status make_history(const std::vector<std::string>& tables) = 0;
  // Creates the subscription, or updates its connection. `source`: the connection string by which this server reaches
  // the source. Error invalid: it reaches none, or another database.
  virtual Status subscribe(const ShardMove& move, const std::string& source, const std::string& slot) = 0;
  // A problem of the subscription that an operator must fix; empty: none.
  virtual Result<std::string> why_no_worker(const ShardMove& move) = 0;
  // How often the subscription's workers have failed; decreases only when the server crashes.
  virtual Result<std::int64_t> failures(const ShardMove& move) = 0;
  // The number of tables whose copy is complete, and of all tables.
  virtual Result<std::pair<int, int>> copied(const ShardMove& move) = 0;
  // The source's slots of tables that are copied but have not caught up. If the source crashed and lost such a slot,
  // the table never catches up.
  virtual Result<std::vector<std::string>> slots_needed(const ShardMove& move) = 0;
  // Disables the subscription and ends its workers. Returns a LIKE pattern of the slots that they may have left at the
  // source; empty: none. Error conflict: they do not end.
  virtual Result<std::string> stop_workers(const ShardMove& move) = 0;
  // Drops the subscription without contacting the source. REQUIRES: stop_workers().
  virtual Status unsubscribe(const ShardMove& move) = 0;
};

}  // namespace tocsin
