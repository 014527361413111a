// Session: one database connection that reconnects by itself and turns libpqxx's exceptions into Errors. All stores of
// src/postgres use sessions (PgListener has a bare connection); every thread has its own. Thread: owner only.
//
// Settings are part of the connection string, so every new connection has them: time-outs (connect, statement, lock,
// idle transaction, TCP), UTC, and synchronous_commit = on. The URL may replace the time-outs of connect and TCP. Plans
// are pinned to index scans and nested loops, which fit small batches in big tables whatever the statistics say.
// Sessions for lists, reports, membership, moves and migrations leave plans to the planner.
//
// A pooler that shares sessions between transactions takes no settings and keeps no prepared statements. The session
// detects a pooler when it connects, and then sends statements as text. The role must have the settings then (see
// server_report() in registry.h).
//
// A connection may die while it is idle, without a sign. After 3 s without a call (idle_for) the session sends SELECT 1
// before the next call, and replaces a connection that does not answer within 2 s.
// After a call without an answer the next connection first ends the server process that may still execute it. Until
// that process is gone, for 20 s at most unless it waits for a standby, calls end with Error unavailable. So a session
// leaves one process behind, however often it tries, and what it reads after a write in doubt (it may have happened) is
// final: a claim without an answer cannot win jobs after the node has read which jobs it won. Through a pooler this
// does not hold, because server processes are shared.
//
// A process whose commit waits for a synchronous standby is not ended: that would show the commit, although a promoted
// standby would lack it. Calls end with unavailable until the standby answers. A commit may be shown too early by
// others (an operator; a crash of the server). So after every doubt the next connection first commits something: it
// waits until the standby has all that came before. A commit whose wait was cancelled is in doubt, too.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <pqxx/pqxx>
#include <string>
#include <unordered_map>

#include "postgres/identity.h"
#include "postgres/last_server_error.h"
#include "postgres/work_errors.h"
#include "tocsin/clock.h"
#include "tocsin/error.h"

namespace tocsin {

struct SessionConfig {
  std::string url;                     // postgresql://... or keyword=value
  std::string application = "tocsin";  // application_name, as pg_stat_activity shows it
  int statement_timeout_ms = 15'000;   // 0: none
  int lock_timeout_ms = 3'000;
  bool is_any_server = false;  // connects to standbys too: for inspecting a server
  // Keeps the synchronous_commit of the server, database and role, so that it can be read. For sessions that only read.
  bool keeps_synchronous_commit = false;
  bool has_pinned_plans = true;       // false: the planner chooses
  bool is_planned_each_time = false;  // for statements whose best plan differs with their parameters
  // The database that must answer; another one is refused. nullptr: any.
  std::shared_ptr<const ExpectedDatabase> expected = nullptr;
  // Called with each id that two jobs had (duplicate_ids.h), on the session's thread.
  std::function<void(std::int64_t job_id)> on_duplicate_id = nullptr;
  // Called by ClientStore::retry_many() with the Error of a dead job that the database refuses to revive, the same way.
  std::function<void(const Error&)> on_refused_retry = nullptr;
  int connect_timeout_s = 5;                  // unless the URL gives one
  std::chrono::milliseconds idle_for{3'000};  // after this time without a call, SELECT 1 precedes the next call
  // Commits wait for synchronous standbys, and after a write in doubt the session does. False: neither, and
  // synchronous_commit is local (through a pooler the role's). A promotion may lose what the session writes and reads.
  // False is only for data that is in no caller's answer.
  bool waits_for_standby = true;
};

// A statement that a session may use many times; see exec().
struct Statement {
  std::string text;  // SQL, or the name of the prepared statement
  bool is_prepared = true;
};

// Host, port and database of a URL, for display, without the password: "db.example:5432/tocsin"; "local/tocsin" without
// a host. A URL without a database means one named as the user. Error invalid: not a connection string.
Result<std::string> database_name(const std::string& url);

// The URL, password included, with Tocsin's session settings added, for libpqxx. `has_settings`: false for a pooler,
// which refuses them. Error invalid: not a connection string.
Result<std::string> connection_string(const SessionConfig& config, bool has_settings = true);

// The server process of a session. A pid may be used again after the process ends; the start time, as the server writes
// it, tells the processes apart.
struct ServerProcess {
  std::int64_t pid = 0;
  std::string started_at;
};

struct Connected {
  std::unique_ptr<pqxx::connection> connection;
  bool is_pooled = false;  // through a pooler that shares sessions: keeps nothing between transactions
  ServerProcess process;
};

// Connects. Finds out whether a pooler answers and, if `expected` is set, which database answers. The connection never
// reconnects by itself, and its errors have neither detail nor context. `at_most`: the longest wait for answers after
// the connection is made. Throws what libpqxx throws, also if another database than `expected` answers.
Connected open_connection(const SessionConfig& config, Duration at_most = Duration::max());

// The message of an exception of libpqxx on one line, for Error::message.
std::string said(const std::exception& error);

// Whether the server is read-only, as its last answer reported. A demoted primary that stays up must not be read,
// because writes go to its successor. Sends nothing.
bool is_demoted(const pqxx::connection& connection);

// The time limit of an unanswered call (call_watch.h): 3 s longer than the statement time-out; a day if there is none.
std::chrono::milliseconds patience(const SessionConfig& config);

// Error::field of unavailable: no connection could be opened.
inline constexpr const char* kUnreachable = "connection";

class Session {
 public:
  explicit Session(SessionConfig config) : config_(std::move(config)) {}

  // Runs `work` on the connection, connecting first when there is none. Each statement of read() and write() commits by
  // itself; those of transact() commit together, if `work` throws nothing. The work of read() may run twice, on a new
  // connection after a failure that closed an older one. Exceptions become Errors:
  //   the URL is not a connection string                               invalid
  //   no connection can be made; another database answers              unavailable, the first with field kUnreachable
  //   connection lost or ended by the server, or no SQL error: read()  unavailable
  //                                                      other calls   in_doubt
  //   the server has become read-only, seen after read()               unavailable
  //   statement time-out                                               unavailable, field kTooSlow
  //   lock time-out (field kLocked), deadlock, unique key, Busy        conflict
  //   the shard lives elsewhere (TC001)                                moved
  //   Superseded                                                       superseded
  //   bad values, broken constraint, Refused                           invalid
  //   other refusals of the server, such as a missing table            unavailable
  //   no partition for a day of history (it is about to be made)       unavailable
  // After unavailable (but for kTooSlow and kRefused) and in_doubt the next call makes a new connection.
  template <class T>
  Result<T> read(const std::function<T(pqxx::nontransaction&)>& work) {
    return run<T>(false, by_statement(work), Duration(0));
  }
  // `more`: added to the usual time limit of a call (patience()).
  template <class T>
  Result<T> write(const std::function<T(pqxx::nontransaction&)>& work, Duration more = Duration(0)) {
    return run<T>(true, by_statement(work), more);
  }
  Status read(const std::function<void(pqxx::nontransaction&)>& work) {
    return read<Unit>([&](pqxx::nontransaction& tx) { return work(tx), Unit{}; });
  }
  Status write(const std::function<void(pqxx::nontransaction&)>& work, Duration more = Duration(0)) {
    return write<Unit>([&](pqxx::nontransaction& tx) { return work(tx), Unit{}; }, more);
  }
  Status transact(const std::function<void(pqxx::work&)>& work, Duration more = Duration(0)) {
    return transact<Unit>([&](pqxx::work& tx) { return work(tx), Unit{}; }, more);
  }
  template <class T>
  Result<T> transact(const std::function<T(pqxx::work&)>& work, Duration more = Duration(0)) {
    const auto together = [&](pqxx::connection& connection) {
      pqxx::work tx(connection);
      T value = work(tx);
      tx.commit();
      return value;
    };
    return run<T>(true, together, more);
  }
  // For work that begins and ends transactions itself.
  template <class T>
  Result<T> write_on_connection(const std::function<T(pqxx::connection&)>& work, Duration more = Duration(0)) {
    return run<T>(true, work, more);
  }
  // Sets the longest wait for the answer of each later call, and for each connect (in whole seconds, at least 2). A
  // call that takes longer fails as if the connection had broken.
  void answer_within(Duration limit) { limit_ = limit; }

  // The statement that `sql` returns, prepared once per connection under `name`; through a pooler its text. REQUIRES:
  // called inside `work`; every call with this name gives the same SQL.
  const Statement& prepared(const std::string& name, const std::function<std::string()>& sql);
  // The same for the statement of sql/<name>.sql.
  const Statement& prepared(const char* name);
  // Whether the last connection went through a pooler.
  bool is_pooled() const { return is_pooled_; }

  // The last error that the server sent, for `work` that catches one.
  const LastServerError& last_server_error() const { return server_error_; }

  const SessionConfig& config() const { return config_; }
  void disconnect();  // the next call connects again
  // How often it has connected. A connection that was lost while idle is replaced without an Error. The new one may
  // reach a standby that has taken over without the last commits; a caller compares the number to notice that.
  std::uint64_t connections() const { return connections_; }

 private:
  // A call without an answer, whose server process may still execute it. Reads may wait in a commit, too: nextval().
  struct Unfinished {
    ServerProcess process;
    std::chrono::steady_clock::time_point until;  // the end of waiting for it, unless it waits for a standby
  };
  template <class T>
  static auto by_statement(const std::function<T(pqxx::nontransaction&)>& work) {
    return [&](pqxx::connection& connection) {
      pqxx::nontransaction tx(connection);
      return work(tx);
    };
  }
  template <class T>
  Result<T> run(bool is_write, const std::function<T(pqxx::connection&)>& work, Duration more) {
    std::optional<T> value;
    const auto attempt = [&](pqxx::connection& connection) { value.emplace(work(connection)); };
    const bool was_connected = connection_ != nullptr;
    auto error = guarded(is_write, attempt, more);
    // A read may be repeated, and the database may be up although an idle connection was lost.
    if (error && !is_write && was_connected && !connection_) error = guarded(is_write, attempt, more);
    if (error) return std::move(*error);
    return std::move(*value);
  }
  std::optional<Error> guarded(bool is_write, const std::function<void(pqxx::connection&)>& work, Duration more);
  std::optional<Error> connect();
  bool is_dead();  // the connection has ended, or was idle and does not answer
  // After doubt, what must come before the first call on a new connection; see above. The error says what it waits for.
  std::optional<Error> settle_doubt(const Connected& opened);
  // Ends the server process of the call without an answer. False: it has not ended yet.
  bool end_unfinished(pqxx::connection& connection);

  SessionConfig config_;
  LastServerError server_error_;
  std::unique_ptr<pqxx::connection> connection_;
  bool is_pooled_ = false;
  ServerProcess process_;
  std::optional<Unfinished> unfinished_;
  bool is_in_doubt_ = false;  // a write, and no commit has shown yet that its synchronous standby has what it wrote
  Duration limit_ = Duration::max();
  std::chrono::steady_clock::time_point used_at_{};  // the end of the last call
  std::unordered_map<std::string, Statement> prepared_;
  std::uint64_t connections_ = 0;
};

// Executes a statement of prepared(), in a transaction of the same session.
template <class... Args>
pqxx::result exec(pqxx::transaction_base& tx, const Statement& statement, Args&&... args) {
  return statement.is_prepared ? tx.exec_prepared(statement.text, std::forward<Args>(args)...)
                               : tx.exec_params(statement.text, std::forward<Args>(args)...);
}
// The same for a statement that must return exactly one row (exec1) or none (exec0); else throws pqxx::unexpected_rows.
template <class... Args>
pqxx::row exec1(pqxx::transaction_base& tx, const Statement& statement, Args&&... args) {
  return statement.is_prepared ? tx.exec_prepared1(statement.text, std::forward<Args>(args)...)
                               : tx.exec_params1(statement.text, std::forward<Args>(args)...);
}
template <class... Args>
void exec0(pqxx::transaction_base& tx, const Statement& statement, Args&&... args) {
  statement.is_prepared ? tx.exec_prepared0(statement.text, std::forward<Args>(args)...)
                        : tx.exec_params0(statement.text, std::forward<Args>(args)...);
}

}  // namespace tocsin
