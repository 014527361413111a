// The statements of a shard move (ADR 0021), except the copying (pg_shard_copy.h). The mover has one store per
// database; nodes use it to end the freeze of a driver that died.
//
// Every change checks, in its transaction, that `driver` still drives the move; every verb may be repeated. Before the
// driver freezes a shard it writes the end of the freeze (`thaw_at`) to the control database, and extends it later. A
// node that finds it past becomes the driver by changing the row that the flip of the map also changes, so only one of
// the two happens. Thread: owner only.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "ports/member_store.h"
#include "postgres/session.h"

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
const char* to_string(ShardMove::State state);

// How long a freeze lasts unless its driver extends it.
inline constexpr std::chrono::milliseconds kThawLease{2000};

class PgMoveStore {
 public:
  explicit PgMoveStore(Session& session) : session_(session) {}

  // ---- control database

  Result<std::vector<ShardMove>> list();
  // Makes the caller the driver of the shard's move, and begins the move unless it is under way. Without a target: only
  // a move under way. `driver`: the number that the caller has already. nullopt: nothing to do. Error invalid: the
  // shard moves to another database, or another driver has the move.
  Result<std::optional<ShardMove>> take(Shard shard, std::optional<DatabaseId> target,
                                        std::optional<std::int64_t> driver);
  // Makes the caller the driver of an overdue move and ends `switching`: the flip of the old driver fails from now on.
  // False: another process was faster, or the driver extended the freeze.
  Result<bool> take_over(ShardMove& move);
  // Error superseded, here and in every call that writes: another driver has the move. `switching`: the shard may be
  // frozen from now on.
  Status set_state(ShardMove& move, ShardMove::State state);
  // Extends the freeze.
  Status keep(const ShardMove& move);
  // Records that the shard is writable.
  Status goes_on(ShardMove& move);
  // The switch itself: writes the target into the shard map, and the state `switched`.
  Status flip(ShardMove& move);
  // Names of the live nodes that were not started with this database.
  Result<std::vector<std::string>> nodes_without(DatabaseId place);
  Result<std::int64_t> map_version();
  // Names of the live nodes that may work with an older map.
  Result<std::vector<std::string>> nodes_behind(std::int64_t version);
  Status end(const ShardMove& move);
  // Records a move again that the control database lost in a failover, as another database remembers it; its state
  // follows from the shard map. Error invalid: the shard lives in neither of the two databases.
  Status recall(const ShardMove& lost);

  // ---- source and target

  // The move of this shard as a database other than the control database remembers it.
  Result<std::optional<ShardMove>> noted(Shard shard);

  // Ends the sessions of earlier drivers, so none of their statements is still running. REQUIRES: all drivers
  // of the move have sessions of this name.
  Status end_others();
  // Records the driver here.
  Status note(const ShardMove& move);
  // The same after take_over(): only where a driver is recorded, because the move may have ended meanwhile.
  Status note_successor(const ShardMove& move);
  Status forget(const ShardMove& move);
  // The tables of jobs, live ones and history.
  Result<std::vector<std::string>> tables(Shard shard);
  // Deletes the shard's rows of a table. REQUIRES: the shard does not live here, and no subscription replicates them.
  Result<std::int64_t> delete_rows(const ShardMove& move, const std::string& table);

  // ---- source

  // Write-freezes the shard: after the commit none of its rows changes here. Error conflict: an open transaction that
  // has written blocks it.
  Status freeze(const ShardMove& move);
  // Ends the freeze: the shard lives here and changes again. Error conflict: as for freeze.
  Status unfreeze(const ShardMove& move);
  // Removes the freeze after the shard's last row was deleted.
  Status thaw(const ShardMove& move);
  Result<std::string> take_counts(const ShardMove& move);  // as JSON, for add_counts
  // Empties the counts after they were added at the target, so that they cannot be added twice.
  Status empty_counts(const ShardMove& move);

  // ---- target

  // Takes and releases the lock of open(). Error conflict: another transaction that uses jobs holds it.
  Status can_open(const ShardMove& move);
  Status open(const ShardMove& move);
  Status add_counts(const ShardMove& move, const std::string& counts);

 private:
  Session& session_;
};

// A transaction that checks first that `move.driver` is who drives the move. Error superseded: it is not.
enum class Statements { usual, long_ones };
Status as_driver(Session& session, const ShardMove& move, const std::function<void(pqxx::work&)>& work,
                 Statements length = Statements::usual);

// The tables of jobs, live ones of the shard and history.
std::vector<std::string> job_tables(pqxx::transaction_base& tx, Shard shard);

}  // namespace tocsin
