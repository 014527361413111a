// Jobs handled by functions of the business inside the database: the function's work and the end of the job are one
// transaction, so exactly once in effect.
//
// Claimed jobs of one type are called in batches while that goes well: a batch costs one commit. When a call fails the
// batch is undone and tried in halves, so a failing job undoes nothing of its neighbours. A repeated attempt runs
// alone: whatever killed its session before takes nobody along. Only one batch of a type runs at a time, or two of
// them would wait for each other's rows; calls that take long run one by one, side by side.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/worker_pool.h"
#include "delivery/handler_kind.h"
#include "tocsin/function_store.h"

namespace tocsin {

// What a function's answer (JSON text; empty: SQL NULL) means: NULL done, {"retry_ms":n} another attempt in n ms,
// {"dead":"why"} never again. Anything else is Error invalid.
Result<Outcome> outcome_of(const std::optional<std::string>& answer);

// Where functions live: one store per session, and the database of a shard. Thread: any.
struct FunctionDatabases {
  int count = 1;
  std::function<int(Shard)> of = [](Shard) { return 0; };  // 0 .. count-1; -1: in none that this node has
  std::function<std::unique_ptr<FunctionStore>(int database)> connect{};              // connects when it is used
  std::function<std::string(int database)> name = [](int) { return std::string(); };  // for people
  std::function<std::string()> refusal = [] {
    return std::string();
  };  // why no function may be called; empty: they may
};

class SqlKind final : public HandlerKind {
 public:
  // `threads`: calls at once, each with a session of its own. REQUIRES: `clock` and what `databases` refers to outlive
  // the process: a call that overruns its node's stop may outlive the node.
  SqlKind(FunctionDatabases databases, int threads, std::string node, const Clock& clock);
  ~SqlKind() override;

  std::string name() const override { return "sql"; }
  // Asks every database that is up.
  std::optional<Error> check(const BizType& type) const override;
  std::shared_ptr<Handler> make(const BizType& type) override;
  void stop(Duration grace) override;

 private:
  class Calls;
  class Lane;
  class TypeHandler;

  static constexpr int kSpareThreads = 8;  // for types that would wait for those whose functions take long
  static constexpr std::size_t kQueue = 4096;

  const std::shared_ptr<Calls> calls_;  // shared with calls that overrun
};

}  // namespace tocsin
