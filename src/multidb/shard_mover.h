// ShardMover: moves shards from one database to another while they are in use. It copies the rows by logical
// replication, freezes the shard (its rows do not change) until the target has all changes, switches the shard map, and
// deletes the rows in the source. Each step may be repeated, so a new call continues an interrupted move. It calls
// databases only, no nodes. Used by `tocsin shard`, with the sessions of move_sessions.h. The simulator gives it
// databases in memory and a virtual clock.
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
// Opens a session. With a shard, the session's application name contains its number, so that MoveStore::end_others()
// finds the session.
using OpenMoveSession = std::function<std::unique_ptr<MoveSession>(DatabaseId, std::optional<Shard>)>;

// A clock that the mover also waits with; the simulator's is virtual.
class PacingClock : public Clock {
 public:
  virtual void sleep(Duration time) = 0;
};

struct MoveOptions {
  // URL by which the target's server reaches the source; empty: the URL that this program uses.
  std::string source_url;
  // Path of a password file on the target's machine, for the source. Empty: the subscription stores the URL's password.
  std::string source_passfile;
  // The longest freeze while the target catches up. After it the shard becomes writable in the source, and the switch
  // is tried again later, at most 100 times.
  std::chrono::milliseconds longest_pause{1000};
  // For how long failing steps are repeated without any progress.
  std::chrono::milliseconds patience{60'000};
};

// The data members are its collaborators and the state of the current move. Thread: owner only.
class ShardMover {
 public:
  // `databases`: all of the installation; the control database has id 0.
  ShardMover(std::vector<MoveDatabase> databases, OpenMoveSession open_session, PacingClock& clock, MoveOptions options,
             OnStep on_step);

  // Returns when the shard lives in `target` only. Error invalid: the shard cannot be moved there, or not now;
  // unavailable or in_doubt: a database is down, call again; superseded: another command has taken the move over.
  Status move(Shard shard, DatabaseId target);
  // Continues an interrupted move.
  Status resume(const ShardMove& under_way) { return move(under_way.shard, under_way.target); }
  // Rolls a move back; does nothing if the shard is not moving. Error invalid: the shard has switched to the target
  // already.
  Status abort(Shard shard);
  // Ends the moves under way. Then moves as few shards as possible, until the databases' shard counts differ by at most
  // one. `database_ids`: the current database of each shard.
  Status rebalance(const std::vector<DatabaseId>& database_ids);
  Result<std::vector<ShardMove>> under_way() { return control().list(); }

 private:
  MoveStore& at(DatabaseId database_id) { return sessions_.at(database_id)->store(); }
  ShardCopy& copy_at(DatabaseId database_id) { return sessions_.at(database_id)->copy(); }
  MoveStore& control() { return at(0); }
  const MoveDatabase& database(DatabaseId database_id) const;
  const std::string& name(DatabaseId database_id) const { return database(database_id).name; }
  // `error` with the name of the database in its message.
  Error about(DatabaseId database_id, const Error& error) const;
  // Opens sessions for this shard, and ends the sessions of earlier drivers of its move.
  Status begin(Shard shard);
  // Records the move again, if the control database lost its record in a failover and another database still has one.
  Status recall(Shard shard);
  // Makes this command the driver of the move (the one process that may change it), or confirms that it is.
  Result<std::optional<ShardMove>> take(Shard shard, std::optional<DatabaseId> target);
  // Reports a step to the operator. A step reported for the first time counts as progress.
  void say(const std::string& step) {
    if (reported_.insert(step).second) progress_at_ = clock_.now();
    on_step_(step);
  }
  // Repeats `step` until it succeeds, fails with an error that a repetition cannot mend, or makes no progress for
  // MoveOptions::patience. `is_whole`: the step begins with take(), so it can continue a move whose freeze a node has
  // ended.
  Status retry_transient(const std::function<Status()>& step, bool is_whole = false);
  Status continue_move(Shard shard, DatabaseId target);
  Status resume_at_source(ShardMove& move);
  Status refuse_nodes_without(DatabaseId database_id);
  Status wait_for_nodes();
  Status note(const ShardMove& move);
  Status confirm(const ShardMove& move);
  Status mirror_types(const ShardMove& move);
  Status copy(const ShardMove& move);
  // Reports why the target's replication workers do not copy or apply changes. Error invalid: they have failed for too
  // long.
  Status check_workers(const ShardMove& move);
  Status count_failures(const ShardMove& move);
  Result<std::string> source_of(const ShardMove& move);
  Status prepare_copy(const ShardMove& move);
  Status delete_copy(const ShardMove& move);
  Status mend_copy(const ShardMove& move);
  Status wait_until_close(const ShardMove& move);
  Status switch_over(ShardMove& move);
  bool can_open_target(const ShardMove& move);
  Result<bool> try_switch(ShardMove& move);
  Result<bool> wait_until_same(const ShardMove& move);
  Status complete(ShardMove& move);
  Status roll_back(ShardMove& move);
  Status stop_replication(const ShardMove& move);
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
  std::set<std::string> reported_;  // steps that on_step_ got
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
