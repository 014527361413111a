// FakeFunctionStore: a FunctionStore (ports/function_store.h: calls SQL functions of `sql` handlers) in memory.
// FakeBusiness: the functions and their data. A call that fails undoes the effects of its transaction. Used by the
// contract suite, the tests of SqlKind and the simulator.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>

#include "ports/function_store.h"
#include "support/fake_sessions.h"

namespace tocsin {

// Mistakes that a test plants; it must fail with each.
struct FakeFunctionBugs {
  bool ignores_token = false;  // calls the function although the claim is stale
  bool keeps_effects = false;  // a failed call leaves the effects of its transaction behind
};

// Thrown by a function to simulate a time-out. `call`: ordinal of the call.
struct TookTooLong : std::runtime_error {
  explicit TookTooLong(int call) : std::runtime_error("took too long at call " + std::to_string(call)) {}
};

// Thread: owner only.
struct FakeBusiness {
  // A function gets the job and the business's data `effects`. It returns the answer (JSON text; nullopt: SQL NULL), or
  // throws what it raises.
  using Effects = std::map<std::string, int>;
  using Function = std::function<std::optional<std::string>(const Job&, Effects& effects)>;
  std::map<std::string, Function> functions;  // by name, all in the schema shop
  Effects effects;
  FakeFunctionBugs bugs;
};

// A transaction is one instant. With `faults` it can fail, happen late, or lose its answer, as the calls of other
// stores. Thread: owner only.
class FakeFunctionStore final : public FunctionStore, private FakeSession {
 public:
  FakeFunctionStore(FakeDatabase& database, FakeBusiness& business, const Clock* clock = nullptr,
                    FaultPoint* faults = nullptr, int session = 0)
      : FakeSession(database, clock, faults, session), business_(business) {}

  Status check(const FunctionName& function) override;
  Result<FunctionReply> run(const FunctionName& function, std::span<const FunctionCall> calls, Duration timeout,
                            const Judge& judge, const std::string& node) override;

  int lose_answers = 0;  // how many of the next calls commit, and then lose their answer (Error in_doubt)

 private:
  FakeBusiness& business_;
};

}  // namespace tocsin
