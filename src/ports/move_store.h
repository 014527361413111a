// MoveStore and ShardCopy: the calls to one database by which a shard (a slice of all jobs) moves from its source
// database to its target while it is in use. ShardMover (src/multidb) drives a move for the command `tocsin shard`,
// with both interfaces for every database. Nodes use MoveStore to end the freeze of a driver that died. Implemented by
// PgMoveStore and PgShardCopy (src/postgres), and in tests/support/fake_moves.h.
//
// A move by its states, with the calls of the control database (C), the source (S) and the target (T):
//   copying    C take; S and T note; S publish, make_slot; T make_history, subscribe; until all is copied() and little
//              behind()
//   switching  C set_state; S freeze; until behind() is 0; C flip. If that lasts too long, back to copying:
//              C set_state; S unfreeze; C set_writable
//   switched   T open; C set_writable; T stop_workers; S drop_slots; T unsubscribe; S unpublish; S take_counts;
//              T add_counts; S empty_counts; when no node is behind the map: S delete_rows, thaw; S and T forget; C end
//   aborting   instead of switched: C set_state; S unfreeze; C set_writable; T stop_workers to S unpublish as above;
//              T delete_rows; S and T forget; C end
//
// The driver is the process that carries out a move: a command, or a node while it ends a freeze. Each call that takes
// a move and writes checks, in its transaction, that the database has recorded `move.driver` as the driver; otherwise
// it returns Error superseded. Exceptions say so. Calls may be repeated. A call that takes a ShardMove& updates it to
// what it has stored.
//
// While a shard is write-frozen, no database changes its rows: from freeze() in the source until unfreeze() there, or
// open() in the target. Before the freeze begins, the driver announces its end (`thaw_at`, by the control database's
// clock); later it extends that. A node that finds thaw_at past becomes the driver, by changing the same row that
// flip() changes. So either the node ends the freeze or flip() happens.
// Thread: owner only (each thread has its own).
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
  enum class State {
    copying,    // lives in the source
    switching,  // lives in the source; freeze() and flip() follow
    switched,   // lives in the target
    aborting,   // stays in the source
  };
  Shard shard = 0;
  DatabaseId source = 0, target = 0;
  std::int64_t driver =
      0;  // number of the process that drives it; larger than that of any before, of earlier moves, too
  State state = State::copying;
  bool may_be_frozen = false;  // `thaw_at` is set: a freeze was announced, and set_writable() not called since
  bool is_overdue = false;     // `thaw_at` was past when this was read
};
const char* to_string(ShardMove::State state);

// How far ahead `thaw_at` is set: how long a freeze lasts unless its driver extends it.
inline constexpr std::chrono::milliseconds kThawLease{2000};

class MoveStore {
 public:
  virtual ~MoveStore() = default;

  // ---- control database

  // All moves under way, by shard.
  virtual Result<std::vector<ShardMove>> list() = 0;
  // Makes the caller the driver of the shard's move, and begins the move unless it is under way. Without a target: only
  // a move under way. `driver`: the number that the caller has from an earlier take(); it keeps that number, or gets a
  // new one if a node has ended the freeze since. Without it the caller replaces any driver. nullopt: the shard lives
  // in the target already, or no move is under way. Error invalid: the shard moves to another database, or another
  // command drives the move.
  virtual Result<std::optional<ShardMove>> take(Shard shard, std::optional<DatabaseId> target,
                                                std::optional<std::int64_t> driver) = 0;
  // Makes the caller the driver of an overdue move, turns `switching` into `copying` (so the flip of the old driver
  // fails from now on), and extends the freeze. False, and nothing is changed: another process was faster, or the
  // driver extended the freeze.
  virtual Result<bool> take_over(ShardMove& move) = 0;
  // Changes the state, and announces or extends the freeze if the new state is `switching` or the shard may be frozen.
  // Error superseded: another driver has the move, or it is in another state than move.state. Error conflict, only for
  // `switching`: a bulk operation runs (BulkStore::start).
  virtual Status set_state(ShardMove& move, ShardMove::State state) = 0;
  // Extends the freeze to kThawLease from now.
  virtual Status keep(const ShardMove& move) = 0;
  // Records that the shard is not frozen; nothing to do unless move.may_be_frozen. REQUIRES: unfreeze() in the source,
  // or open() in the target, has succeeded.
  virtual Status set_writable(ShardMove& move) = 0;
  // Writes the target into the shard map, and the state `switched`, in one transaction, and notifies the nodes: the
  // shard lives there from now on. Error superseded also if the state is not `switching`.
  virtual Status flip(ShardMove& move) = 0;
  // Names of the live nodes that were not started with this database.
  virtual Result<std::vector<std::string>> nodes_without(DatabaseId database_id) = 0;
  virtual Result<std::int64_t> map_version() = 0;  // of the shard map
  // Names of the live nodes that do not work with this version of the map, or a later one, yet.
  virtual Result<std::vector<std::string>> nodes_behind(std::int64_t version) = 0;
  // Deletes the record of the move.
  virtual Status end(const ShardMove& move) = 0;
  // Records a move again that the control database lost in a failover, unless a move of the shard is recorded. `lost`:
  // from noted() in another database; the driver's number becomes one larger. The state follows from the shard map, and
  // the shard may be frozen. Checks no driver. Error invalid: the shard lives in neither of the two databases.
  virtual Status recall(const ShardMove& lost) = 0;

  // ---- source and target: each has a record of the move of its own, except the control database, which has that above

  // The move of this shard as this database has recorded it; nullopt: not at all. Only shard, source, target and driver
  // are kept here.
  virtual Result<std::optional<ShardMove>> noted(Shard shard) = 0;

  // Ends the sessions of earlier drivers in this database, so that none of their statements is still running. REQUIRES:
  // all drivers of the move give their sessions the same application name. Error conflict: a session did not end within
  // five seconds.
  virtual Status end_others() = 0;
  // Records the move with its driver here. Error superseded: a later driver is recorded, or a move between other
  // databases.
  virtual Status note(const ShardMove& move) = 0;
  // note() after take_over(), only where the move is recorded already. Error superseded also if it is not: it may have
  // ended.
  virtual Status note_successor(const ShardMove& move) = 0;
  // Deletes this database's record of the move, unless a later driver is recorded; that is no error.
  virtual Status forget(const ShardMove& move) = 0;
  // The tables that hold rows of the shard, with their schema: its live table, all of history, and relayed outbox
  // entries.
  virtual Result<std::vector<std::string>> tables(Shard shard) = 0;
  // Deletes the shard's rows of one of tables(); returns how many. May take hours. REQUIRES: the shard does not live
  // here, and no subscription replicates them.
  virtual Result<std::int64_t> delete_rows(const ShardMove& move, const std::string& table) = 0;

  // ---- source

  // Write-freezes the shard: from the commit on it does not live here, and none of its rows changes. Error conflict: an
  // open transaction that uses jobs held the table lock for too long (0.3 s).
  virtual Status freeze(const ShardMove& move) = 0;
  // Ends the freeze when the move does not happen now: the shard lives here again. Error conflict: as for freeze.
  virtual Status unfreeze(const ShardMove& move) = 0;
  // Removes what freeze() left here, after the flip and the deletion of the shard's rows. Error conflict: as for
  // freeze.
  virtual Status thaw(const ShardMove& move) = 0;
  // Subtracts the shard's jobs from the counts of this database, once, and returns them as JSON for add_counts(). A
  // repeated call returns the same.
  virtual Result<std::string> take_counts(const ShardMove& move) = 0;
  // Makes take_counts() return no counts from now on, because the target has added them: forget() there also forgets
  // that.
  virtual Status empty_counts(const ShardMove& move) = 0;

  // ---- target

  // Whether open() would get its table lock now: takes and releases it. Error conflict: an open transaction that uses
  // jobs held it for too long (0.3 s).
  virtual Status can_open(const ShardMove& move) = 0;
  // The shard lives here from now on: its jobs can be created and changed. Error conflict: as for can_open.
  virtual Status open(const ShardMove& move) = 0;
  // Adds what take_counts() returned to the counts of this database, once.
  virtual Status add_counts(const ShardMove& move, const std::string& counts) = 0;
};

// ShardCopy copies a moving shard by logical replication: a publication of its rows and a replication slot at the
// source, a subscription with its workers at the target.
//
// Every call that writes checks the driver of the move, as MoveStore's do, except steps that cannot be in a
// transaction: creating and dropping slots, refreshing the list of tables, ending workers, and creating history tables.
// MoveStore::end_others() ends such steps of an earlier driver.
class ShardCopy {
 public:
  virtual ~ShardCopy() = default;

  // ---- source

  // Creates the publication, or adds the tables that it lacks. Error invalid: the server's wal_level is not logical.
  virtual Status publish(const ShardMove& move) = 0;
  // Creates the slot unless it is there. It waits until every open transaction that has written ends, for up to a day.
  // REQUIRES: there is no subscription: it would not get what was committed since its slot was lost.
  virtual Status make_slot(const ShardMove& move) = 0;
  // Whether all of MoveStore::tables() are published; false when a day of history has begun since publish().
  virtual Result<bool> publishes_all(const ShardMove& move) = 0;
  virtual Status unpublish(const ShardMove& move) = 0;          // drops the publication
  virtual Result<std::string> slot(const ShardMove& move) = 0;  // name of the slot
  // Ends the sessions that use the move's slots, and drops these slots: the slot of the move, and the slots of table
  // copies that match the LIKE pattern `of_copies`, from stop_workers(). Error conflict: a slot is still in use.
  virtual Status drop_slots(const ShardMove& move, const std::string& of_copies) = 0;
  // Whether all these slots are there, and the server still has the log that they need (max_slot_wal_keep_size).
  virtual Result<bool> has_slots(const std::vector<std::string>& names) = 0;
  // The source's current position in its write-ahead log, as text.
  virtual Result<std::string> position() = 0;
  // Bytes of the log up to `position` that the target has not confirmed; 0: it has all of it. Error conflict: the slot
  // is gone or has lost its log, so the copy must begin anew.
  virtual Result<std::int64_t> behind(const ShardMove& move, const std::string& position) = 0;

  // ---- target

  // State of the move's subscription.
  enum class Subscription {
    none,
    enabled,
    disabled,  // by stop_workers()
  };
  virtual Result<Subscription> subscription(const ShardMove& move) = 0;
  // Creates the history tables among `tables`, the source's MoveStore::tables().
  virtual Status make_history(const std::vector<std::string>& tables) = 0;
  // Creates the subscription, or updates its connection and its list of tables. `source`: the connection string by
  // which this server reaches the source. `slot`: ShardCopy::slot() of the source. Error invalid: the server reaches no
  // database by it, or another one. REQUIRES: the subscription is not disabled.
  virtual Status subscribe(const ShardMove& move, const std::string& source, const std::string& slot) = 0;
  // Empty; or, human-readable, that other subscriptions have all workers of this server, so this one cannot copy. An
  // operator must change that.
  virtual Result<std::string> why_no_worker(const ShardMove& move) = 0;
  // How often the subscription's workers have failed; decreases only when the server crashes.
  virtual Result<std::int64_t> failures(const ShardMove& move) = 0;
  // How many tables of the subscription are copied and have caught up, and how many there are.
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
