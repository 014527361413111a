// Consumers: the consumers of pull types in a simulated cluster. Each leases jobs from a node and works for a while.
// Then it acknowledges them, extends or refuses (nack) their leases, answers too late, or never answers. Made by World.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulation/sim_node.h"

namespace tocsin {

// Probabilities, per leased job or, for hangs_up and wanders, per poll.
struct ConsumerHabits {
  double forgets = 0.1;   // never answers
  double is_late = 0.15;  // answers after the end of the lease
  double fails = 0.2;     // answers nack: the job is tried again
  double extends = 0.3;   // extends the lease after half of its work
  double hangs_up = 0.1;  // ends the poll before its answer comes
  double wanders = 0.2;   // polls another node than before
  Duration longest_work = std::chrono::seconds(3);
  Duration longest_poll = std::chrono::seconds(2);
};

// Thread: owner only.
class Consumers {
 public:
  // `types`: at least one, all pull types.
  Consumers(SimContext& world, std::vector<SimNode*> nodes, std::vector<const BizType*> types)
      : world_(world), nodes_(std::move(nodes)), types_(std::move(types)) {}

  // Starts `n` consumers, which act until the simulation ends.
  void begin(int n);
  void set_habits(const ConsumerHabits& habits) { habits_ = habits; }

 private:
  struct Request;

  void live(std::size_t number);
  std::shared_ptr<Request> ask(Scheduler::FiberId asker, SimNode& node, const BizType& type);
  void work(int session, SimNode& node, const ClaimedJob& claimed);
  void extend(int session, SimNode& node, const ClaimedJob& claimed);
  void settle(int session, SimNode& node, const ClaimedJob& claimed, const Outcome& outcome);
  // Calls `work` with a session with the job's database. Error in_doubt: a crash or a failover happened meanwhile.
  template <class Work>
  auto call(int session, JobId job, Work work);
  SimNode* any_node();
  bool chance(double p) { return world_.random.unit() < p; }
  Duration up_to(Duration most) { return Duration(world_.random.below(static_cast<std::uint64_t>(most.count()) + 1)); }

  SimContext& world_;
  const std::vector<SimNode*> nodes_;
  const std::vector<const BizType*> types_;
  ConsumerHabits habits_;
  std::vector<Scheduler::FiberId> fibers_;
};

}  // namespace tocsin
