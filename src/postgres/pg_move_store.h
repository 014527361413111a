// What moving a shard to another database asks of the databases, but for the copying (pg_shard_copy.h): one store per
// database and move.
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

#include "postgres/session.h"
#include "tocsin/member_store.h"

namespace tocsin {

struct ShardMove {
  enum class State { copying, switching, switched, aborting };
  Shard shard = 0;
  Place source = 0, target = 0;
  std::int64_t driver = 0;
  State state = State::copying;
  bool may_stand_still = false;  // no later step has recorded that it is writable
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
  // Becomes the driver of the shard's move, which begins with this unless it is under way. Without a target: only of
  // one that is. `driver`: the caller's number, which it keeps. nullopt: there is nothing to do. Error invalid: it is
  // on its way to another database, or another driver has it.
  Result<std::optional<ShardMove>> take(Shard shard, std::optional<Place> target, std::optional<std::int64_t> driver);
  // Becomes the driver of a move that is overdue; `switching` ends with this, for its flip would fail. False: another
  // process was faster, or the driver extended the freeze.
  Result<bool> take_over(ShardMove& move);
  // Error superseded, here and wherever something is changed: another driver has it. `switching`: it may stand
  // still from now on.
  Status set_state(ShardMove& move, ShardMove::State state);
  // Extends the freeze.
  Status keep(const ShardMove& move);
  // Records that the shard is writable.
  Status goes_on(ShardMove& move);
  // The moment of the move: the shard map says the target, and the state is `switched`.
  Status flip(ShardMove& move);
  // Names of the live nodes that were not given this database.
  Result<std::vector<std::string>> nodes_without(Place place);
  Result<std::int64_t> map_version();
  // Names of the live nodes that may work with an older map.
  Result<std::vector<std::string>> nodes_behind(std::int64_t version);
  Status end(const ShardMove& move);
  // Records a move anew that home has lost in a failover, as another database remembers it. Its state is what the shard
  // map says. Error invalid: the shard lives in neither of the two.
  Status recall(const ShardMove& lost);

  // ---- source and target

  // What a database other than home remembers of a move of this shard.
  Result<std::optional<ShardMove>> noted(Shard shard);

  // Ends the sessions of earlier drivers, so none of their statements is still running. REQUIRES: all drivers
  // of the move have sessions of this name.
  Status end_others();
  // Makes the driver known here.
  Status note(const ShardMove& move);
  // The same for one who took over: only where a driver is known, for the move may have ended meanwhile.
  Status note_successor(const ShardMove& move);
  Status forget(const ShardMove& move);
  // The tables of jobs, live ones and history.
  Result<std::vector<std::string>> tables(Shard shard);
  // Deletes the shard's rows of a table. REQUIRES: it does not live here, and nothing replicates them.
  Result<std::int64_t> delete_rows(const ShardMove& move, const std::string& table);

  // ---- source

  // After the commit nothing of the shard changes here. Error conflict: an open transaction stands in the way.
  Status freeze(const ShardMove& move);
  // It lives here and changes again. Error conflict: as for freeze.
  Status unfreeze(const ShardMove& move);
  // After the last row is gone.
  Status thaw(const ShardMove& move);
  Result<std::string> take_counts(const ShardMove& move);  // as JSON, for add_counts
  // They were added at the target: there is nothing to add any more, also when the target forgets that it has.
  Status empty_counts(const ShardMove& move);

  // ---- target

  // Whether open() would get its lock now. Error conflict: another transaction uses jobs, and has for a while.
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
