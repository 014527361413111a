// The handler kind `sql`: jobs handled by functions of the business inside the database. The function's effects and the
// end of the job are one transaction, so they happen exactly once (ADR 0016).
//
// Claimed jobs of one type in one database are called in batches: a batch costs one commit. If a call fails, the batch
// is undone and tried in halves, so that the other jobs get their effects; after a time-out each job is tried alone. A
// repeated attempt runs alone, so that a function that ends its session costs no other job an attempt. Only one batch
// of a type runs at a time in a database, because two could wait for each other's rows. Slow calls are not batched and
// run in parallel.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/worker_pool.h"
#include "delivery/handler_kind.h"
#include "ports/function_store.h"

namespace tocsin {

// Reads a function's answer (JSON text; nullopt: SQL NULL): NULL is done, {"retry_ms":n} another attempt in n ms,
// {"dead":"why"} dead. Anything else is Error invalid.
Result<Outcome> outcome_of(const std::optional<std::string>& answer);

// How SqlKind reaches the node's databases, numbered from 0. Thread: any.
struct FunctionDatabases {
  int count = 1;
  std::function<int(Shard)> of = [](Shard) { return 0; };                 // where the shard lives; -1: not on this node
  std::function<std::unique_ptr<FunctionStore>(int database)> connect{};  // the store connects at its first call
  std::function<std::string(int database)> name = [](int) { return std::string(); };  // human-readable
  // Why this node may not call functions; empty: it may.
  std::function<std::string()> refusal = [] { return std::string(); };
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

  static constexpr int kSpareThreads = 8;      // for types without a running call while all threads are busy
  static constexpr std::size_t kQueue = 4096;  // tasks that may wait, per type and database

  const std::shared_ptr<Calls> calls_;  // shared with calls that overrun
};

}  // namespace tocsin
