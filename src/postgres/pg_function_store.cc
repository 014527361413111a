#include "postgres/pg_function_store.h"

#include <algorithm>

#include "postgres/duplicate_ids.h"
#include "postgres/finish_arrays.h"
#include "postgres/queries.h"
#include "postgres/sql_text.h"
#include "postgres/values.h"

namespace tocsin {
namespace {

constexpr int kMostFreed = 16;  // ids that two jobs had, in one call
constexpr const char* kReadOnly = "25006";
constexpr const char* kUnlock = "SELECT pg_catalog.pg_advisory_unlock_all()";

// Longer than it takes to learn that a statement was cancelled.
constexpr int kOtherStatementsMs = 3'000;

SessionConfig function_session(SessionConfig config) {
  // A function that catches the time-out and continues is ended with its session after this time.
  config.statement_timeout_ms = kOtherStatementsMs;
  return config;
}

// The server ended the session, or is read-only: not an error of the function. A function can raise the same states,
// such as those of another server that it has asked, and can make its transaction read-only.
bool is_of_the_server(const pqxx::connection& connection, const pqxx::sql_error& error) {
  const std::string& state = error.sqlstate();
  if (state == kReadOnly) return is_demoted(connection);
  return (state.starts_with("57P") || state.starts_with("08")) && !connection.is_open();
}

bool is_time_out(const pqxx::sql_error& error) { return error.sqlstate() == "57014"; }

// The first line without "ERROR:".
std::string message_of(const std::exception& error) {
  std::string text = error.what();
  text.erase(std::min(text.find('\n'), text.size()));
  if (const auto start = text.find("ERROR:"); start == 0) text.erase(0, text.find_first_not_of(' ', 6));
  return text;
}

Error wrong(const FunctionName& function, const std::string& what) {
  return {ErrorCode::invalid, function.schema + "." + function.name + " " + what, "handler.function"};
}

// The table of the statement: one partition if all jobs lie in it, else tocsin.job_live.
std::string table_of(std::span<const FunctionCall> calls) {
  const int first = sql::live_table_of(shard_of(calls.front().job_id));
  const bool is_single = std::ranges::all_of(
      calls, [&](const FunctionCall& call) { return sql::live_table_of(shard_of(call.job_id)) == first; });
  return is_single ? sql::live_table(first) : sql::kLive;
}

// The function failed: the job is retried or dead, and the transaction is undone.
struct Failed {
  std::string why;
  bool is_too_slow = false;
};

class SandboxChanged final : public std::exception {
 public:
  const char* what() const noexcept override { return "the sandbox of the function was altered"; }
};

// libpqxx has exceptions without a state for deadlocks, and for states that it takes for a lost connection. They fail
// the function, unless the connection is lost. `when` begins the reason.
template <class Work>
auto with_deadlocks_failed(const pqxx::connection& connection, const char* when, const Work& work) {
  try {
    return work();
  } catch (const pqxx::sql_error&) {
    throw;
  } catch (const pqxx::failure& error) {
    if (!connection.is_open()) throw;
    throw Failed{when + message_of(error)};
  }
}

// An error that the function itself raised fails it. Errors of the server pass.
template <class Work>
auto guarded(const pqxx::connection& connection, const Work& work) {
  try {
    return with_deadlocks_failed(connection, "", work);
  } catch (const pqxx::sql_error& error) {
    if (is_of_the_server(connection, error)) throw;
    throw Failed{is_time_out(error) ? "took longer than its time to run" : message_of(error), is_time_out(error)};
  }
}

// What the function can cause while the job is finished fails it, too: as an error of the server it would be called
// again for ever, without counting attempts.
template <class Work>
auto finishing(const pqxx::connection& connection, const Work& work) {
  try {
    return with_deadlocks_failed(connection, "the end of the job: ", work);
  } catch (const pqxx::sql_error& error) {
    if (is_time_out(error)) throw Failed{"the end of the job took too long: " + message_of(error), true};
    if (error.sqlstate() != kReadOnly || is_of_the_server(connection, error)) throw;
    throw Failed{"the end of the job: " + message_of(error)};
  }
}

}  // namespace

PgFunctionStore::PgFunctionStore(SessionConfig config, const Clock& clock)
    : session_(function_session(std::move(config))), clock_(clock) {}

Status PgFunctionStore::check(const FunctionName& function) {
  using Found = std::optional<Error>;
  auto checked = session_.read<Found>([&](pqxx::nontransaction& tx) -> Found {
    if (tx.exec1("SELECT to_regrole('tocsin_handler')")[0].is_null())
      return wrong(function,
                   "cannot be called: this server has no role tocsin_handler yet; docs/operations.md says how "
                   "to make it");
    const auto rows = tx.exec_params(sql::statement("function_check"), function.schema, function.name);
    if (rows.empty()) return wrong(function, "is no function of this database");
    const auto& row = rows[0];
    if (!row[1].as<bool>()) return wrong(function, "must take one argument of the type tocsin.job");
    if (!row[0].as<bool>()) return wrong(function, "must be a function that returns one jsonb");
    if (!row[3].as<bool>())
      return wrong(function, "cannot be reached: GRANT USAGE ON SCHEMA " + function.schema + " TO tocsin_handler");
    if (!row[2].as<bool>()) return wrong(function, "may not be called: GRANT EXECUTE on it TO tocsin_handler");
    return {};
  });
  if (!checked) return checked.error();
  if (*checked) return **checked;
  return Unit{};
}

void PgFunctionStore::build_sandbox(pqxx::connection& connection) {
  try {
    pqxx::work tx(connection);
    tx.exec0("SET LOCAL ROLE tocsin_handler");
    tx.exec0(sql::statement("function_sandbox"));
    tx.exec0("RESET ROLE");
    const auto identity = tx.exec1(sql::statement("function_sandbox_identity"))[0].as<std::string>();
    tx.commit();
    sandbox_ = identity;
  } catch (const pqxx::sql_error& error) {
    if (is_of_the_server(connection, error)) throw;
    throw Failed{"this node cannot run anything as tocsin_handler: " + message_of(error)};
  }
}

FunctionReply PgFunctionStore::run_in_one(pqxx::connection& connection, const FunctionName& function,
                                          std::span<const FunctionCall> calls, Duration timeout, const Judge& judge,
                                          const std::string& node) {
  const std::string table = table_of(calls);
  pqxx::work tx(connection);
  const auto milliseconds = std::max<std::int64_t>(1, timeout.count() / 1000);
  // A function may wait for a lock as long as it may run. A server whose client has gone ends the session.
  const std::string settings = sql::set_local("lock_timeout", "0") +
                               sql::set_local("client_connection_check_interval", "1000") +
                               sql::set_local("statement_timeout", std::to_string(milliseconds));
  const auto sandbox = tx.exec(settings + sql::statement("function_sandbox_identity"));
  if (sandbox.size() != 1 || sandbox[0][0].as<std::string>() != sandbox_) throw SandboxChanged();

  LeaseArrays keys;
  for (const FunctionCall& call : calls) keys.add(call.job_id, call.token);
  const MonoTime began = clock_.now();
  const auto answers = guarded(connection, [&] {
    return tx.exec_params(sql::over("call_function", table), keys.shards.literal(), keys.jobs.literal(),
                          keys.tokens.literal(), function.schema, function.name);
  });
  // Resets all settings: a search_path of the function would change the meaning of the next statement, and its
  // synchronous_commit the durability of the commit.
  // A cursor that outlives the transaction is read at its commit, outside the sandbox.
  const std::string look =
      sql::statement("function_leftovers", {{"sandbox_oid", sandbox_.substr(0, sandbox_.find('/'))}});
  const auto left =
      finishing(connection, [&] { return tx.exec1(std::string("RESET ALL; UNLISTEN *; ") + kUnlock + "; " + look); });
  if (left[0].as<bool>()) throw Failed{"it left a cursor WITH HOLD open"};
  const bool is_temporary_left = left[1].as<bool>();
  if (is_temporary_left && calls.size() > 1) throw Failed{"jobs of a batch would see each other's temporary objects"};

  FunctionReply reply;
  reply.took = clock_.now() - began;
  reply.written.resize(calls.size());
  std::vector<FinishRequest> requests;
  for (const auto& row : answers) {
    const auto n = row[0].as<std::size_t>() - 1;
    const auto answer = row[1].is_null() ? std::nullopt : std::optional(std::string(row[1].c_str(), row[1].size()));
    auto request = judge(n, answer);
    if (!request) throw Failed{request.error().message};
    requests.push_back(*request);
    reply.written[n] = *std::move(request);
  }
  if (!requests.empty()) {
    const auto applied = finishing(
        connection, [&] { return FinishArrays(requests).exec_unprepared(tx, sql::over("finish", table), node); });
    // It holds the rows locked, so only the function can have moved them.
    if (applied.size() != requests.size()) throw Failed{"the job was changed while its function ran"};
  }
  guarded(connection, [&] {
    tx.commit();
    return 0;
  });
  // Unless the commit dropped them.
  if (is_temporary_left) has_leftover_objects_ = pqxx::nontransaction(connection).exec1(look)[1].as<bool>();
  return reply;
}

Result<FunctionReply> PgFunctionStore::run(const FunctionName& function, std::span<const FunctionCall> calls,
                                           Duration timeout, const Judge& judge, const std::string& node) {
  if (calls.empty()) return FunctionReply{};
  // Twice: the session may be a new one, without the sandbox.
  for (int round = 0, freed = 0; round < 2; ++round) {
    bool is_altered = false, is_freed = false;
    auto reply = session_.write_on_connection<FunctionReply>(
        [&](pqxx::connection& connection) -> FunctionReply {
          try {
            if (session_.is_pooled())
              throw Failed{
                  "functions need a session of the node's own, and the database is reached through a pooler "
                  "that shares them"};
            if (sandbox_.empty()) build_sandbox(connection);
            return run_in_one(connection, function, calls, timeout, judge, node);
          } catch (const pqxx::unique_violation&) {
            // Thrown by the finish statement: everything is undone, and the calls are repeated at once.
            pqxx::nontransaction tx(connection);
            tx.exec(kUnlock);  // these locks outlive the transaction
            if (!renumber_finished_jobs(session_, tx, {})) throw;
            is_freed = true;
            return {};
          } catch (const SandboxChanged&) {
            is_altered = true;
            return {};
          } catch (const Failed& failed) {
            pqxx::nontransaction(connection).exec(kUnlock);  // these locks outlive the transaction
            return {{}, "function " + function.schema + "." + function.name + ": " + failed.why, failed.is_too_slow};
          }
        },
        timeout);
    if (reply && is_freed) {
      if (++freed <= kMostFreed) --round;
      continue;
    }
    if (reply && !is_altered && !has_leftover_objects_) return reply;
    sandbox_.clear();
    session_.disconnect();
    if (!reply || std::exchange(has_leftover_objects_, false)) return reply;
  }
  return Error{ErrorCode::unavailable, "the sandbox of the function was altered", ""};
}

}  // namespace tocsin
