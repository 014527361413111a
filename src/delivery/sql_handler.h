// SqlKind: the handler kind `sql`: jobs handled by the business's SQL functions in the database. The effects of the
// function and the end of the job are one transaction, so the effects happen exactly once (ADR 0016). Owned by
// HandlerRegistry.
//
// Claimed jobs of one type in one database are called in batches, because a batch costs one commit:
//  - If a call fails, its batch is undone and tried in halves, so that the other jobs get their effects. After a
//    time-out each job is tried alone.
//  - A repeated attempt runs alone, so that a function that ends its session costs no other job an attempt.
//  - Only one batch of a type runs at a time in a database, because two could wait for each other's rows.
//  - Functions whose calls take 50 ms or more on average are called one by one, and in parallel.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/worker_pool.h"
#include "delivery/handler_kind.h"
#include "ports/function_store.h"

namespace tocsin {

// Reads a function's answer: JSON text, or nullopt for SQL NULL.
//  - NULL: done.
//  - {"retry_ms":n}: another attempt in n ms (a whole number, up to a year); after the last attempt the job is dead.
//  - {"dead":"why"}: dead.
//  - Other answers: Error invalid, and the call counts as failed.
Result<Outcome> outcome_of(const std::optional<std::string>& answer);

// How SqlKind reaches the node's databases, numbered from 0 to count - 1 (not database ids). Thread: any.
struct FunctionDatabases {
  int count = 1;
  std::function<int(Shard)> of = [](Shard) { return 0; };  // where the shard lives; -1: no database to call now
  std::function<std::unique_ptr<FunctionStore>(int database)> connect{};  // required; connects at its first call
  std::function<std::string(int database)> name = [](int) { return std::string(); };  // human-readable
  // Why this node may not call functions (its role is a superuser); empty: it may.
  std::function<std::string()> refusal = [] { return std::string(); };
};

class SqlKind final : public HandlerKind {
 public:
  // `threads`: calls that run at a time; up to kSpareThreads more may. Each call has a session of its own. `node`: name
  // of this node, for the errors in jobs. REQUIRES: `clock` and what `connect` uses live as long as the process,
  // because a call that overruns stop() uses them after it. What the other functions use is valid in every call of the
  // kind and its handlers.
  SqlKind(FunctionDatabases databases, int threads, std::string node, const Clock& clock);
  ~SqlKind() override;

  std::string name() const override { return "sql"; }
  // Waits for the databases. Error invalid: the settings are wrong; refusal() gives a reason; or a database that
  // answers has no function of that name with parameter (tocsin.job) and result jsonb that the role tocsin_handler may
  // call.
  std::optional<Error> check(const BizType& type) const override;
  std::shared_ptr<Handler> make(const BizType& type) override;
  void stop(Duration grace) override;

 private:
  class Calls;
  class Lane;
  class TypeHandler;

  static constexpr int kSpareThreads = 8;      // added while all `threads` are busy, for types without a running call
  static constexpr std::size_t kQueue = 4096;  // tasks that may wait, per type and database; more: not started

  const std::shared_ptr<Calls> calls_;  // shared with calls that overrun stop()
};

}  // namespace tocsin
