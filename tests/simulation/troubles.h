// Troubles: the faults of one simulated life beyond single calls: crashes, outages, failovers, clock steps, locked rows
// and so on. The seed draws which kinds happen, and how often. Made by run_life().
#pragma once

#include <set>

#include "simulation/world.h"

namespace tocsin {

// Thread: owner only.
class Troubles {
 public:
  explicit Troubles(World& world) : world_(world) {}

  void begin();
  MonoTime end() const { return end_; }  // of the present spell of faults
  MonoTime last_end() const { return end_ + lull_ + second_spell_; }
  // Whether a second spell of faults follows. REQUIRES: end() of the first has come.
  bool has_lull() const { return lull_ > Duration(0); }
  // Runs the time between the two spells: no call fails, callers continue, what the first spell left behind stays, and
  // many jobs become due at once. Then the second spell begins.
  void lull();
  // Ends all faults: databases answer, nodes are up, and no type is paused.
  void end_all();
  // Starts a node. Sometimes scans hang at that moment, or more hints arrive than memory holds.
  void boot(SimNode& node);

 private:
  void plan();
  void strike();
  void rush_in();
  void stop_node(SimNode& node);
  void outage(SimDatabase& database);
  Duration shortest_crash() const;
  void crash(SimDatabase& database);
  void crash_after_claim(SimDatabase& database);
  void fail_over(SimDatabase& database);
  // `shortest`: the database is down for at least this long.
  void promote(SimDatabase& database, const FakeDatabase::Snapshot& standby, Duration shortest);
  void down(SimDatabase& database, Duration length, const char* what);
  void step_clock(SimDatabase& database);
  JobId any_live(const SimDatabase& database);  // 0: there is none
  void lock_some_row(SimDatabase& database);
  void refuse_some_row(SimDatabase& database);
  void cut_off(SimNode& node, SimDatabase& database);
  void toggle_pause();
  MonoTime until(Duration most);  // up to `most` from now, and not beyond end()

  World& world_;
  MonoTime end_{};
  Duration lull_{0}, second_spell_{0};
  // Probabilities per strike.
  double crashes_ = 0, clock_steps_ = 0, outages_ = 0, failovers_ = 0, cuts_ = 0, locks_ = 0, pauses_ = 0, freezes_ = 0,
         slow_starts_ = 0, refusals_ = 0;
  SimDatabase* crash_armed_ = nullptr;
  std::set<DatabaseId> lagging_;  // databases whose standbys receive no commits
};

}  // namespace tocsin
