// FunctionStore: calls the functions of `sql` handlers (handlers that are SQL functions), each in the transaction that
// finishes its job. SqlKind (delivery/sql_handler.h) calls it on worker threads. Implemented by PgFunctionStore
// (src/postgres) and FakeFunctionStore (tests/support); tests/contract runs one suite on both.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ports/job_store.h"
#include "tocsin/error.h"

namespace tocsin {

// schema.name, each 1 to 63 bytes, not quoted.
struct FunctionName {
  std::string schema, name;
};

// One attempt of a claimed job.
struct FunctionCall {
  JobId job_id = 0;
  ClaimToken token = 0;
};

struct FunctionReply {
  // One per call, in order: the outcome that was written. nullopt: the claim is stale, or another transaction holds the
  // row locked, or its shard does not live here; the function was not called for it.
  std::vector<std::optional<FinishRequest>> written;
  // Not empty: one call failed with this message, and the transaction was undone: `written` is empty, and the jobs are
  // claimed as before.
  std::string failure;
  bool is_too_slow = false;  // the failure is a time-out
  Duration took{0};          // from the first call to the last, without the finish; 0 when one failed
};

// Thread: one at a time, not always the same.
class FunctionStore {
 public:
  virtual ~FunctionStore() = default;

  // Ok: the function exists, takes one tocsin.job, returns one jsonb, and the role tocsin_handler may call it. Error
  // invalid, field handler.function: one of these is not so; the message says which. Other Errors: no answer.
  virtual Status check(const FunctionName& function) = 0;

  // Turns the function's answer to calls[n] (JSON text; nullopt: SQL NULL) into the outcome to write. An Error fails
  // the call.
  using Judge = std::function<Result<FinishRequest>(std::size_t n, const std::optional<std::string>& answer)>;

  // Calls the function for each job whose claim is valid, and finishes the jobs, in one transaction: all or nothing.
  // Each row is locked before its function is called, so a stale attempt changes nothing, and a repeated run() calls no
  // function for a job that was finished. `timeout` bounds all calls together. `node`: name of this node, for the jobs'
  // errors. Error in_doubt: all or nothing happened; other Errors: nothing happened.
  virtual Result<FunctionReply> run(const FunctionName& function, std::span<const FunctionCall> calls, Duration timeout,
                                    const Judge& judge, const std::string& node) = 0;
};

}  // namespace tocsin
