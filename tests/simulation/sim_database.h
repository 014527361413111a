// SimDatabase: one database of a simulated installation: rows in memory, a wall clock and faults. SimDatabases: all
// databases. Wire: the network between one node and one database.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "simulation/faults.h"
#include "simulation/scheduler.h"
#include "simulation/trace.h"
#include "support/fake_database.h"

namespace tocsin {

// The wall clock of a database's host. It runs a little fast or slow, and is set from time to time.
class WallClock {
 public:
  explicit WallClock(const Scheduler& scheduler) : scheduler_(scheduler) {}
  WallTime now() const {
    const Duration passed = scheduler_.now() - since_;
    return at_ + passed + Duration(static_cast<std::int64_t>(static_cast<double>(passed.count()) * drift_));
  }
  void step(Duration by) {
    at_ = now() + by;
    since_ = scheduler_.now();
  }
  void set_drift(double drift) {
    step(Duration(0));
    drift_ = drift;
  }

 private:
  const Scheduler& scheduler_;
  MonoTime since_{};
  WallTime at_{std::chrono::sys_days(std::chrono::year(2026) / 3 / 1)};
  double drift_ = 0;
};

// Thread: owner only.
struct SimDatabase {
  SimDatabase(DatabaseId number, int shards, Scheduler& scheduler, Random& random, Trace& trace)
      : id(number), wall(scheduler), data([this] { return wall.now(); }, shards), faults(scheduler, random, trace) {}

  std::string name() const { return id == 0 ? "control" : "database " + std::to_string(id); }

  const DatabaseId id;
  WallClock wall;
  FakeDatabase data;
  Faults faults;
};

// A node's calls to one database pass it, before the database's Faults. It can be cut while other nodes still reach the
// database. Thread: owner only.
class Wire final : public FaultPoint {
 public:
  Wire(SimDatabase& database, const Scheduler& scheduler) : faults_(database.faults), scheduler_(scheduler) {}

  void cut_until(MonoTime time) { cut_until_ = time; }
  bool is_cut() const { return scheduler_.now() < cut_until_; }

  // While true, calls take effect at once and do not wait: for code outside any fiber.
  void set_direct(bool is_direct) { is_direct_ = is_direct; }

  Effect before(const FakeCall& call) override {
    if (is_direct_) return Effect::happens;
    const Effect effect = faults_.before(call);
    if (!is_cut()) return effect;
    faults_.hang(cut_until_);
    return Effect::unavailable;
  }
  void working(const FakeCall& call) override {
    if (!is_direct_) faults_.working(call);
  }
  bool after(const FakeCall& call) override { return is_direct_ || (faults_.after(call) && !is_cut()); }
  void keep(std::function<void()> effect) override { faults_.keep(std::move(effect)); }

 private:
  Faults& faults_;
  const Scheduler& scheduler_;
  MonoTime cut_until_{};
  bool is_direct_ = false;
};

// Thread: owner only.
class SimDatabases {
 public:
  // `database_ids`: the database of each shard; every database has at least one shard.
  SimDatabases(std::vector<DatabaseId> database_ids, Scheduler& scheduler, Random& random, Trace& trace)
      : database_ids_(std::move(database_ids)) {
    const int n = 1 + *std::ranges::max_element(database_ids_);
    for (DatabaseId database_id = 0; database_id < n; ++database_id)
      all_.emplace_back(database_id, static_cast<int>(database_ids_.size()), scheduler, random, trace);
    all_.front().data.members.set_database_ids(database_ids_);
  }

  SimDatabase& control() { return all_.front(); }
  SimDatabase& at(DatabaseId database_id) { return all_.at(static_cast<std::size_t>(database_id)); }
  SimDatabase& of(JobId job) { return at(database_of(shard_of(job))); }
  const SimDatabase& of(JobId job) const { return all_.at(static_cast<std::size_t>(database_of(shard_of(job)))); }
  DatabaseId database_of(Shard shard) const { return database_ids_.at(static_cast<std::size_t>(shard)); }
  int shards() const { return static_cast<int>(database_ids_.size()); }
  std::size_t size() const { return all_.size(); }
  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

  // Number of live jobs (not yet in history).
  std::size_t live() const {
    std::size_t n = 0;
    for (const SimDatabase& each : all_) n += each.data.live().size();
    return n;
  }

 private:
  const std::vector<DatabaseId> database_ids_;
  std::deque<SimDatabase> all_;
};

}  // namespace tocsin
