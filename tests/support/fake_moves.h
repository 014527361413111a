// FakeMoves: what one database stores about moves of shards between databases, in memory: who drives a move, freezes
// (rows of the shard do not change), and logical replication that lags. It follows the migrations and statements of
// src/postgres, one method per transaction (ADR 0021). Used by move_life.h and the tests of ShardMover.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "multidb/shard_mover.h"
#include "support/fake_sessions.h"

namespace tocsin {

class FakeMoves;

// All databases of an installation, by id, the control database first. Thread: owner only.
using FakeMoveDatabases = std::deque<FakeMoves>;

// `now`: this database's clock. The data members are tables, the replication log and row locks. Thread: owner only.
class FakeMoves {
 public:
  FakeMoves(FakeDatabase& database, FakeMoveDatabases& all);

  std::function<void(const FakeDatabase::Change&)> on_change;  // of jobs; see FakeDatabase::on_change
  std::function<std::vector<std::string>(std::int64_t version)> nodes_behind;

  FakeDatabase& data() { return database_; }
  bool lives_here(Shard shard) const { return here_.contains(shard); }
  void settle_in(Shard shard) { here_.insert(shard); }
  void lose(Shard shard) { moves_.erase(shard); }  // as a failover that loses the record of a move
  // One step of the subscription's worker: copies the table, or applies one change. False: nothing to do.
  bool replicate(Shard shard);
  // What moves have left in this database, such as "note of 3, slot of 3"; empty: nothing.
  std::string leftovers() const;
  // Calls with a smaller number than this, in sessions of this shard's drivers, have no effect any more: end_sessions()
  // ended them.
  std::uint64_t sessions_ended(Shard shard) const;
  void lock_row(Shard shard, std::uint64_t call) { locks_[shard].insert(call); }
  void unlock_row(Shard shard, std::uint64_t call) { locks_[shard].erase(call); }
  bool is_row_locked(Shard shard, std::uint64_t by_others_than) const;
  std::int64_t counted() const { return counted_; }
  std::int64_t rows() const;

  // Control database
  std::vector<ShardMove> list(WallTime now) const;
  Result<std::optional<ShardMove>> take(Shard shard, std::optional<DatabaseId> target,
                                        std::optional<std::int64_t> driver, WallTime now);
  std::optional<ShardMove> take_over(const ShardMove& move, WallTime now);
  Status set_state(const ShardMove& move, ShardMove::State state, WallTime now);
  Status keep(const ShardMove& move, WallTime now);
  Status set_writable(const ShardMove& move);
  Status flip(const ShardMove& move, WallTime now);
  Status end(const ShardMove& move);
  Status recall(const ShardMove& lost, WallTime now);

  // Source and target
  std::optional<ShardMove> noted(Shard shard) const;
  void end_sessions(Shard shard, std::uint64_t by);
  Status note(const ShardMove& move);
  Status note_successor(const ShardMove& move);
  void forget(const ShardMove& move);
  Result<std::int64_t> delete_rows(const ShardMove& move);
  Status freeze(const ShardMove& move);
  Status unfreeze(const ShardMove& move);
  Status thaw(const ShardMove& move);
  Status can_open(const ShardMove& move);
  Status open(const ShardMove& move);
  Result<std::string> take_counts(const ShardMove& move);
  Status empty_counts(const ShardMove& move);
  Status add_counts(const ShardMove& move, const std::string& counts);

  // Copying
  Status publish(const ShardMove& move);
  void make_slot(Shard shard, std::uint64_t call);
  Status unpublish(const ShardMove& move);
  void drop_slot(Shard shard, std::uint64_t call);  // also ends earlier calls that are still making the slot
  std::int64_t position() const { return log_; }
  Result<std::int64_t> behind(Shard shard, std::int64_t position) const;
  Status subscribe(const ShardMove& move);
  std::int64_t failures(Shard shard) const;
  bool is_copied(Shard shard) const;
  Status disable(const ShardMove& move);
  Status unsubscribe(const ShardMove& move);
  bool has_slot(Shard shard) const { return slots_.contains(shard); }
  void lose_slot(Shard shard) { drop_slot(shard, 0); }  // as a failover
  ShardCopy::Subscription subscription(Shard shard) const;
  bool publishes(Shard shard) const { return published_.contains(shard); }

 private:
  struct Record {  // a row of tocsin.move
    ShardMove move;
    std::optional<WallTime> thaw_at;
    bool is_rescued = false;
    std::optional<std::int64_t> counts;
    bool is_counted = false;
  };
  struct Logged {
    std::int64_t position;
    JobId job;
    std::optional<FakeDatabase::Copy> row;  // after the change; nullopt: deleted
  };
  struct Subscription {
    DatabaseId source;
    bool is_enabled = true;
    bool is_copied = false;
    std::int64_t applied = 0;
    std::int64_t failures = 0;
  };
  Status fenced(const ShardMove& move) const;
  void log(JobId job);
  std::vector<JobId> jobs_of(Shard shard) const;
  ShardMove told(const Record& record, WallTime now) const;
  DatabaseId database_of(Shard shard) const { return database_.members.map().database_of(shard); }

  FakeDatabase& database_;
  FakeMoveDatabases& all_;
  std::set<Shard> here_;
  std::map<Shard, Record> moves_;
  std::int64_t counted_ = 0;
  std::map<Shard, std::uint64_t> ended_;
  std::map<Shard, std::set<std::uint64_t>> locks_;  // of the shard's row in tocsin.move, by calls
  std::int64_t log_ = 0;
  std::deque<Logged> logged_;  // of shards with a slot
  std::set<Shard> published_;
  std::map<Shard, std::int64_t> slots_;  // the position that the target has confirmed
  std::map<Shard, std::uint64_t> slot_dropped_;
  std::map<Shard, Subscription> subscriptions_;
};

// A session with one database, of the driver of `shard` or, without a shard, of a node. `faults` decides what happens
// to each call.
std::unique_ptr<MoveSession> fake_move_end(FakeMoves& moves, std::optional<Shard> shard, const Clock& clock,
                                           FaultPoint& faults);

}  // namespace tocsin
