// What goes wrong in one life, beyond single calls: which kinds, and how often, is drawn from its seed.
#pragma once

#include <set>

#include "simulation/world.h"

namespace tocsin {

// Thread: owner only.
class Troubles {
 public:
  explicit Troubles(World& world) : world_(world) {}

  void begin();
  MonoTime end() const { return end_; }  // of this spell of faults
  MonoTime last_end() const { return end_ + lull_ + second_spell_; }
  // Some worlds have two spells of faults. REQUIRES: end() of the first has come.
  bool has_lull() const { return lull_ > Duration(0); }
  // The time between them: nothing fails, callers go on, what the first left behind is still there, and a crowd comes.
  // The second begins then.
  void lull();
  // From now on nothing is wrong any more.
  void end_all();
  // Starts a node, now and then in a bad moment.
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
  void promote(SimDatabase& database, const FakeDatabase::Snapshot& standby);
  void down(SimDatabase& database, Duration length, const char* what);
  void step_clock(SimDatabase& database);
  JobId any_live(const SimDatabase& database);  // 0: there is none
  void lock_some_row(SimDatabase& database);
  void refuse_some_row(SimDatabase& database);
  void cut_off(SimNode& node, SimDatabase& database);
  void toggle_pause();
  MonoTime until(Duration most);  // so long from now, but not beyond the end

  World& world_;
  MonoTime end_{};
  Duration lull_{0}, second_spell_{0};
  // Chances.
  double crashes_ = 0, clock_steps_ = 0, outages_ = 0, failovers_ = 0, cuts_ = 0, locks_ = 0, pauses_ = 0, freezes_ = 0,
         slow_starts_ = 0, refusals_ = 0;
  SimDatabase* crash_armed_ = nullptr;
  std::set<DatabaseId> lagging_;  // their standbys hear nothing
};

}  // namespace tocsin
