// Functions of the business that live in the database, called in the very transaction that finishes their jobs.
// Implemented by PgFunctionStore (src/postgres) and FakeFunctionStore (tests/support); tests/contract runs one suite on
// both.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tocsin/error.h"
#include "tocsin/job_store.h"

namespace tocsin {

// schema.name, each 1 to 63 bytes, spelled as the database spells them.
struct FunctionName {
  std::string schema, name;
};

// One attempt of a claimed job.
struct FunctionCall {
  JobId job_id = 0;
  ClaimToken token = 0;
};

struct FunctionReply {
  // One per call, in order: what was written. Empty: the claim is not this one's any more, or somebody holds the row
  // locked; the function was not called for it.
  std::vector<std::optional<FinishRequest>> written;
  // Not empty: some call failed, with these words, and nothing of all of them happened.
  std::string failure;
  bool is_too_slow = false;  // it failed because it took longer than it was given
  Duration took{0};          // by the calls alone; 0 when they failed
};

// Thread: owner only (each thread has its own).
class FunctionStore {
 public:
  virtual ~FunctionStore() = default;

  // Error invalid, field handler.function: there is no such function, it takes or returns something else, or
  // tocsin_handler may not call it.
  virtual Status check(const FunctionName& function) = 0;

  // What an answer (JSON text; empty: SQL NULL) of call number n means. An error makes the call a failed one.
  using Judge = std::function<Result<FinishRequest>(std::size_t n, const std::optional<std::string>& answer)>;

  // Calls the function for each job whose claim still stands, and finishes the jobs, all in one transaction: all or
  // nothing. Each row is locked before its function is called, so an attempt whose claim is over changes nothing, and
  // repeating one that has been written calls nothing. The calls together get `timeout`.
  // Error unavailable: nothing was called. In doubt: all of it or nothing of it happened.
  virtual Result<FunctionReply> run(const FunctionName& function, std::span<const FunctionCall> calls, Duration timeout,
                                    const Judge& judge, const std::string& node) = 0;
};

}  // namespace tocsin
