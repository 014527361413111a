// Functions of a business beside the database in memory: what they do is undone with their transaction.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>

#include "ports/function_store.h"
#include "support/fake_sessions.h"

namespace tocsin {

// Mistakes that a real store could make, to prove that the tests notice them.
struct FakeFunctionBugs {
  bool ignores_token = false;  // a function is called whichever claim is valid
  bool keeps_effects = false;  // a failed call leaves its neighbours' work behind
};

// What a function throws that did not end in time.
struct TookTooLong : std::runtime_error {
  explicit TookTooLong(int call) : std::runtime_error("took too long at call " + std::to_string(call)) {}
};

// Thread: owner only.
struct FakeBusiness {
  // Answers as a function of the database does, or throws what it raises. `effects` is the business's own data.
  using Effects = std::map<std::string, int>;
  using Function = std::function<std::optional<std::string>(const Job&, Effects& effects)>;
  std::map<std::string, Function> functions;  // by name, all in the schema shop
  Effects effects;
  FakeFunctionBugs bugs;
};

// Thread: owner only.
class FakeFunctionStore final : public FunctionStore {
 public:
  FakeFunctionStore(FakeDatabase& database, FakeBusiness& business) : database_(database), business_(business) {}

  Status check(const FunctionName& function) override;
  Result<FunctionReply> run(const FunctionName& function, std::span<const FunctionCall> calls, Duration timeout,
                            const Judge& judge, const std::string& node) override;

  int lose_answers = 0;  // so many to come are lost on their way, after the commit

 private:
  FakeDatabase& database_;
  FakeBusiness& business_;
};

}  // namespace tocsin
