// Moves shards from one database to another while they are in use: copies the rows by logical replication, freezes the
// shard until the target has all changes, switches the shard map, and deletes the rows in the source. Each step may be
// repeated, so that a new call continues what was interrupted. Calls the databases only, not the nodes. Used by
// `tocsin shard`, with the sessions of move_sessions.h; the simulator gives it databases in memory and a virtual clock.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ports/move_store.h"
#include "ports/type_store.h"

namespace tocsin {

using OnStep = std::function<void(const std::string&)>;  // called with a line of text for the operator

struct MoveDatabase {
  DatabaseId database_id = 0;
  std::string name;
  std::string url;
};

// A session of a move with one database.
class MoveSession {
 public:
  virtual ~MoveSession() = default;
  virtual MoveStore& store() = 0;
  virtual ShardCopy& copy() = 0;
  virtual TypeStore& types() = 0;
};
// Opens a session. With a shard, the session's application name has its number, so that end_others() finds it.
using OpenMoveSession = std::function<std::unique_ptr<MoveSession>(DatabaseId, std::optional<Shard>)>;

// A clock that the mover also waits with; the simulator's is virtual.
class PacingClock : public Clock {
 public:
  virtual void sleep(Duration time) = 0;
};

struct MoveOptions {
  // URL by which the target's server reaches the source; empty: the one that this program uses.
  std::string source_url;
  // On the target's machine, for the password of the source; empty: that of the URL is stored with the subscription.
  std::string source_passfile;
  // Longest freeze of the shard while the target catches up; after it the shard becomes writable in the source, and the
  // switch is tried again later, 100 times at most.
  std::chrono::milliseconds longest_pause{1000};
  // How long failing steps are repeated without progress.
  std::chrono::milliseconds patience{60'000};
};

// The data members are its collaborators and the state of the current move. Thread: owner only.
class ShardMover {
 public:
  // `databases`: all; the control database has id 0.
  ShardMover(std::vector<MoveDatabase> databases, OpenMoveSession open_session, PacingClock& clock, MoveOptions options,
             OnStep on_step);

  // Returns when the shard lives in `target` alone. Error invalid: it cannot be moved there, or not now; unavailable or
  // in_doubt: a database is down, call again; superseded: another command has taken the move over.
  Status move(Shard shard, DatabaseId target);
  // Continues an interrupted move.
  Status resume(const ShardMove& under_way) { return move(under_way.shard, under_way.target); }
  // Rolls a move back; nothing to do if the shard is not moving. Error invalid: the shard has switched already.
  Status abort(Shard shard);
  // Ends the moves under way, then moves as few shards as possible until the databases' shard counts differ by at most
  // one. `database_ids`: the current database of each shard.
  Status rebalance(const std::vector<DatabaseId>& database_ids);
  Result<std::vector<ShardMove>> under_way() { return control().list(); }

 private:
  MoveStore& at(DatabaseId database_id) { return sessions_.at(database_id)->store(); }
  ShardCopy& copy_at(DatabaseId database_id) { return sessions_.at(database_id)->copy(); }
  MoveStore& control() { return at(0); }
  const MoveDatabase& database(DatabaseId database_id) const;
  const std::string& name(DatabaseId database_id) const { return database(database_id).name; }
  // The error, with the name of the database that it comes from.
  Error about(DatabaseId database_id, const Error& error) const;
  // Opens sessions for this shard and ends those of earlier drivers.
  Status begin(Shard shard);
  // Records the move again if the control database lost it in a failover and another database has a record of it.
  Status recall(Shard shard);
  // Makes this command the driver of the move (the one process that may change it), or confirms that it still is.
  Result<std::optional<ShardMove>> take(Shard shard, std::optional<DatabaseId> target);
  // Reports a step to the operator. A step reported for the first time counts as progress.
  void say(const std::string& step) {
    if (reported_.insert(step).second) progress_at_ = clock_.now();
    on_step_(step);
  }
  // Repeats `step` until it succeeds, fails with an error that a repetition cannot mend, or fails for too long without
  // progress. `is_whole`: the step begins with take(), so a move that a node has taken over can be continued.
  Status retry_transient(const std::function<Status()>& step, bool is_whole = false);
  Status continue_move(Shard shard, DatabaseId target);
  Status resume_at_source(ShardMove& move);
  Status refuse_nodes_without(DatabaseId database_id);
  Status wait_for_nodes();
  Status note(const ShardMove& move);
  Status confirm(const ShardMove& move);
  Status mirror_types(const ShardMove& move);
  Status copy(const ShardMove& move);
  // Reports why the target's workers do not copy or apply changes. Error invalid: they have failed for too long.
  Status check_workers(const ShardMove& move);
  Status count_failures(const ShardMove& move);
  Result<std::string> source_of(const ShardMove& move);
  Status prepare_copy(const ShardMove& move);
  Status mend_copy(const ShardMove& move);
  Status wait_until_close(const ShardMove& move);
  Status switch_over(ShardMove& move);
  bool can_open_target(const ShardMove& move);
  Result<bool> try_switch(ShardMove& move);
  Result<bool> wait_until_same(const ShardMove& move);
  Status complete(ShardMove& move);
  Status roll_back(ShardMove& move);
  Status unlink(const ShardMove& move);
  Status clear(const ShardMove& move, DatabaseId database_id);
  Status end(const ShardMove& move);
  // Rolls back a move that this command has begun and a database has refused.
  void take_back(Shard shard);

  const std::vector<MoveDatabase> databases_;
  const OpenMoveSession open_session_;
  PacingClock& clock_;
  const MoveOptions options_;
  const OnStep on_step_;
  std::set<std::string> reported_;  // steps
  MonoTime progress_at_{};
  std::map<DatabaseId, std::unique_ptr<MoveSession>> sessions_;
  std::optional<std::int64_t> driver_;  // number of this command as the driver of the current move
  bool is_begun_here_ = false;          // this command has begun the move
  bool is_refused_ = false;             // a database has refused its copy
  std::string worker_trouble_;          // as reported last
  struct Failures {
    std::optional<std::int64_t> count;  // as read last
    std::optional<MonoTime> first;      // of this series of failures
    MonoTime last{};
  };
  Failures failures_;  // of the target's workers, in this move
};

}  // namespace tocsin
