// SimFunctions: calls the SQL functions of types of kind `sql` for one node in one database, as delivery/sql_handler
// does: claims of these types are not durable, and the transaction of the call looks up the claim. Owned by SimNode.
#pragma once

#include <map>

#include "pipeline/engine.h"
#include "simulation/scheduler.h"
#include "simulation/sim_database.h"
#include "support/fake_functions.h"

namespace tocsin {

struct SimContext;
class SimNode;

// The functions of a simulated business: one returns, the other raises an error.
inline const FunctionName kReturns{"shop", "returns"}, kRaises{"shop", "raises"};
FakeBusiness any_business(const FakeFunctionBugs& bugs);

// What the call of one job's function means for its attempt, as SqlKind reads it.
Outcome outcome_of(const Result<FunctionReply>& reply);
// The end of an attempt whose function said `outcome`.
FinishRequest request_for(const ClaimedJob& claimed, const Outcome& outcome);

// Thread: owner only.
class SimFunctions {
 public:
  SimFunctions(SimContext& world, const SimNode& node, SimDatabase& database, Wire& wire)
      : world_(world), node_(node), database_(database), wire_(wire) {}
  ~SimFunctions();  // the process is gone: calls end where they wait

  // Calls the function after `wait`, the time that the attempt spends in the queue of the worker threads. `outcome`:
  // what the function returns. `finish`: gets the end of the attempt.
  void start(const ClaimedJob& claimed, const Outcome& outcome, Duration wait, Handler::Finish finish);
  std::size_t running() const { return calls_.size(); }
  std::size_t running(TypeId type) const;

 private:
  struct Call {
    TypeId type;
    Scheduler::FiberId fiber;
  };
  Outcome call(const ClaimedJob& claimed, const Outcome& outcome);

  SimContext& world_;
  const SimNode& node_;
  SimDatabase& database_;
  Wire& wire_;
  std::map<std::uint64_t, Call> calls_;
  std::uint64_t last_call_ = 0;
};

}  // namespace tocsin
