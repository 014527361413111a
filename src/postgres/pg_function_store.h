// PgFunctionStore: calls the SQL functions of `sql` handlers in the sandbox role tocsin_handler, in the transaction
// that finishes their jobs. Implements FunctionStore, which says what each call promises (ports/function_store.h).
// SqlKind has a pool of stores per database; one thread at a time uses a store.
//
// A function runs as that role, called by a SECURITY DEFINER wrapper that exists in this session only (pg_temp). So SET
// ROLE and RESET ROLE are refused to it, no other session can alter the wrapper, and if the function alters it, the
// store notices before the next call and builds another one in a new session. Nothing that a call leaves in its session
// is trusted afterwards: settings are reset, statements are not prepared.
#pragma once

#include <string>

#include "ports/function_store.h"
#include "postgres/session.h"

namespace tocsin {

class PgFunctionStore final : public FunctionStore {
 public:
  // `config`: of one database. Its statement time-out is replaced: 3 s, and the `timeout` of run() for the calls of
  // functions. `clock` measures FunctionReply::took and must outlive the store. Through a pooler every run() returns a
  // FunctionReply with `failure` set, because the wrapper needs a session of its own.
  PgFunctionStore(SessionConfig config, const Clock& clock);

  Status check(const FunctionName& function) override;
  Result<FunctionReply> run(const FunctionName& function, std::span<const FunctionCall> calls, Duration timeout,
                            const Judge& judge, const std::string& node) override;

 private:
  void build_sandbox(pqxx::connection& connection);
  // One try of run(). run() repeats it after a clash of ids or an altered wrapper. Throws if the function or the
  // database fails.
  FunctionReply run_in_one(pqxx::connection& connection, const FunctionName& function,
                           std::span<const FunctionCall> calls, Duration timeout, const Judge& judge,
                           const std::string& node);

  Session session_;
  const Clock& clock_;
  std::string sandbox_;                // the wrapper's row in pg_proc ("oid/xmin"); empty: none was built
  bool has_leftover_objects_ = false;  // a function left temporary objects: the session is closed after the call
};

}  // namespace tocsin
