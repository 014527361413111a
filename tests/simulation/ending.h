// Ending: the end of every simulated life, after the last fault. First all jobs that are left must end. Then it checks,
// in phases, promises that hold only without faults (such as: a node that drains leaves no job behind). Called by
// run_life().
#pragma once

#include <set>

#include "simulation/world.h"

namespace tocsin {

// Thread: owner only.
class Ending {
 public:
  explicit Ending(World& world) : world_(world) {}
  void run();

 private:
  void live_on();
  void calm_down();
  std::set<TypeId> draw_crowd();
  void create_unheard(const std::set<TypeId>& crowd);
  void create_followers(const std::set<TypeId>& crowd);
  void rush_in(const std::set<TypeId>& crowd);
  void crowd_out();
  void lose_one_database();
  void cut_one_off();
  void cut_one_off_elsewhere();
  void fail_over_quickly();
  void pass_permits_on();
  void pause_one();
  void let_wait(Duration time);
  void limit_all();
  void hand_over_one();
  void hand_over();
  void check_owners(const char* when);
  void check_at_rest();
  void settle();

  World& world_;
};

}  // namespace tocsin
