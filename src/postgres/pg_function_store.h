// FunctionStore on PostgreSQL: calls the SQL functions of `sql` handlers in the sandbox role tocsin_handler.
//
// A function runs as that role, called by a SECURITY DEFINER wrapper that exists in this session only (pg_temp). So SET
// ROLE and RESET ROLE are refused to it, no other session can alter the wrapper, and the store notices if a function
// did. Nothing that a call leaves in its session is trusted afterwards: settings are reset, statements are not
// prepared. docs/adr/0016 says what this stops and what it does not. Thread: owner only.
#pragma once

#include <string>

#include "ports/function_store.h"
#include "postgres/session.h"

namespace tocsin {

class PgFunctionStore final : public FunctionStore {
 public:
  // REQUIRES: `clock` outlives the store.
  PgFunctionStore(SessionConfig config, const Clock& clock);

  Status check(const FunctionName& function) override;
  Result<FunctionReply> run(const FunctionName& function, std::span<const FunctionCall> calls, Duration timeout,
                            const Judge& judge, const std::string& node) override;

 private:
  void build_sandbox(pqxx::connection& connection);
  FunctionReply run_in_one(pqxx::connection& connection, const FunctionName& function,
                           std::span<const FunctionCall> calls, Duration timeout, const Judge& judge,
                           const std::string& node);

  Session session_;
  const Clock& clock_;
  std::string sandbox_;                // identity of the wrapper in this session; empty: not built yet
  bool has_leftover_objects_ = false;  // a function left temporary objects in this session
};

}  // namespace tocsin
