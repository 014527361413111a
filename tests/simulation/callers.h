// The outside of a simulated cluster: businesses that create, cancel and change jobs, by REST (the node hears of it) or
// by SQL.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulation/sim_node.h"

namespace tocsin {

// Thread: owner only.
class Callers {
 public:
  // `prompt`: those of the types whose jobs nothing holds back.
  Callers(SimContext& world, std::vector<SimNode*> nodes, std::vector<TypeId> types, std::vector<TypeId> prompt,
          Duration lookahead);

  // `n` callers that act until `end`.
  void begin(int n, MonoTime end);
  // Somebody cancels these jobs, `in` from now.
  void cancel_later(std::vector<JobId> jobs, Duration in);
  // In the calm: jobs that must fire on time.
  void probe(int n, Duration on_time, Duration scan_interval);
  // A transaction that has been open for `age` commits now and tells nobody: its job must fire within `bound` from now.
  void commit_late(Duration age, Duration bound);
  // Likewise, in good time: the scanner finds it before it is due.
  void commit_ahead(Duration in, Duration on_time);
  // Many jobs that are due now; of one type, or of all.
  void rush(int n, std::optional<TypeId> type = {});

 private:
  void act(FakeJobDesk& desk);
  void create(FakeJobDesk& desk);
  void cancel(FakeJobDesk& desk);
  void change(FakeJobDesk& desk);
  void repair(FakeJobDesk& desk);
  NewJob any_job();
  NewJob any_prompt_job();
  When any_time();
  JobId any_known();
  void hint(const Job& job);
  void notify();

  SimContext& world_;
  std::vector<SimNode*> nodes_;
  const std::vector<TypeId> types_, prompt_;
  const Duration lookahead_;
  std::vector<JobId> known_;  // acknowledged
  int last_biz_ = 0;
};

}  // namespace tocsin
