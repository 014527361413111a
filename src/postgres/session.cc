#include "postgres/session.h"

#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "ports/row_refusal.h"
#include "postgres/call_watch.h"
#include "postgres/sql_text.h"

namespace tocsin {
namespace {

// libpqxx reads server parameters only by a statement, and gives no access to libpq's PGconn. An explicit instantiation
// of a template may name a private member.
template <auto kMember>
struct RawConnection {
  friend PGconn* raw(const pqxx::connection_base& connection) { return (connection.*kMember)(); }
};
template struct RawConnection<&pqxx::connection_base::raw_connection>;
PGconn* raw(const pqxx::connection_base& connection);

// Longer than a statement may take. A process that does not end by then waits for its disk.
constexpr std::chrono::seconds kUnfinishedFor(20);
constexpr std::chrono::seconds kProbe(2);  // time for the answer to SELECT 1 after idle_for
constexpr int kLeastConnectTime = 2;       // seconds; libpq knows no less
constexpr const char* kWaitCancelled = "the wait for a synchronous standby was cancelled: it may lack the commit";

std::chrono::milliseconds in_ms(Duration usual, Duration at_most) {
  return std::chrono::ceil<std::chrono::milliseconds>(std::min(usual, at_most));
}

using Keywords = std::map<std::string, std::string>;

Result<Keywords> parse(const std::string& url) {
  char* message = nullptr;
  PQconninfoOption* options = PQconninfoParse(url.c_str(), &message);
  if (!options) {
    std::string why = message ? message : "not a connection string";
    PQfreemem(message);
    while (!why.empty() && why.back() == '\n') why.pop_back();
    return Error{ErrorCode::invalid, why, "database"};
  }
  Keywords keywords;
  for (PQconninfoOption* option = options; option->keyword; ++option) {
    if (option->val) keywords[option->keyword] = option->val;
  }
  PQconninfoFree(options);
  return keywords;
}

std::string quoted(const std::string& value) {
  std::string out = "'";
  for (char c : value) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

Error from_refusal(const std::string& state, bool has_no_partition, bool is_write, std::string message) {
  const std::string group = state.substr(0, 2);
  if (state == "TC001") return {ErrorCode::moved, std::move(message), ""};
  if (state == Superseded::kState) return {ErrorCode::superseded, std::move(message), ""};
  if (state == "57014") return {ErrorCode::unavailable, std::move(message), kTooSlow};
  if (state == "55P03") return {ErrorCode::conflict, std::move(message), kLocked};
  if (group == "40" || state == "23505") return {ErrorCode::conflict, std::move(message), ""};
  // The values are right: the table of the day does not exist yet.
  if (has_no_partition) return {ErrorCode::unavailable, std::move(message), ""};
  if (group == "22" || group == "23" || group == "54") return {ErrorCode::invalid, std::move(message), ""};
  // An internal error, such as a damaged page; a trigger; a right.
  if (is_write && (group == "XX" || group == "P0" || state == "42501"))
    return {ErrorCode::unavailable, std::move(message), kRefused};
  // The server ended the session: the transaction may have been committed a moment before.
  if (is_write && (state == "57P01" || state == "57P02" || state == "57P03" || group == "08"))
    return {ErrorCode::in_doubt, std::move(message), ""};
  return {ErrorCode::unavailable, std::move(message), ""};
}

// Data on an idle connection means that the server closed it. Better noticed before a statement is sent than after,
// when its outcome would be in doubt.
bool is_closed_by_server(int socket) {
  pollfd waiting{socket, POLLIN, 0};
  return poll(&waiting, 1, 0) > 0;
}

struct AnotherDatabase : pqxx::broken_connection {
  using broken_connection::broken_connection;
};

// libpqxx would reconnect silently in the middle of a transaction, to any server that answers. The call is deprecated,
// and libpqxx 6 has no other.
void forbid_reconnect(pqxx::connection& connection) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  connection.inhibit_reactivation(true);
#pragma GCC diagnostic pop
}

void refuse_another(const ExpectedDatabase& expected, const DatabaseIdentity& found) {
  if (found == expected.identity()) return;
  throw AnotherDatabase("another database answers at the address of '" + expected.name() + "': " + to_string(found) +
                        ", instead of " + to_string(expected.identity()));
}

}  // namespace

std::string said(const std::exception& error) {
  const std::string text = one_line(error.what());
  // The message of libpqxx for a connection that ends between two statements tells an operator nothing.
  return text.find("Could not obtain client encoding") == text.npos ? text : "the connection was lost";
}

bool is_demoted(const pqxx::connection& connection) {
  for (const char* name : {"default_transaction_read_only", "in_hot_standby"}) {
    const char* value = PQparameterStatus(raw(connection), name);
    if (value && std::string_view(value) == "on") return true;
  }
  return false;
}

std::chrono::milliseconds patience(const SessionConfig& config) {
  // The server ends a statement at its time-out, and answers. A call is a few statements, of which one may be slow.
  return config.statement_timeout_ms > 0 ? std::chrono::milliseconds(config.statement_timeout_ms + 3'000)
                                         : std::chrono::milliseconds(std::chrono::hours(24));
}

Result<std::string> connection_string(const SessionConfig& config, bool has_settings) {
  auto keywords = parse(config.url);
  if (!keywords) return keywords.error();
  Keywords& k = *keywords;
  // emplace: settings in the URL win.
  k.emplace("connect_timeout", std::to_string(config.connect_timeout_s));
  k.emplace("keepalives_idle", "10");
  k.emplace("keepalives_interval", "5");
  k.emplace("keepalives_count", "3");
  k.emplace("tcp_user_timeout", "15000");
  k.emplace("target_session_attrs", "read-write");
  if (config.is_any_server) k["target_session_attrs"] = "any";
  k["application_name"] = config.application;
  k["client_encoding"] = "UTF8";
  // Parallel workers are off: two slow lists would occupy six processes, and acknowledgements would wait for
  // processors.
  std::string options =
      "-c tocsin.session=1 -c search_path=pg_catalog,pg_temp -c timezone=UTC -c datestyle=ISO -c intervalstyle=postgres"
      " -c default_transaction_isolation=read\\ committed -c client_min_messages=warning -c "
      "idle_in_transaction_session_timeout=15000 -c jit=off -c max_parallel_workers_per_gather=0";
  if (!config.keeps_synchronous_commit)
    options += config.waits_for_standby ? " -c synchronous_commit=on" : " -c synchronous_commit=local";
  options += " -c statement_timeout=" + std::to_string(config.statement_timeout_ms);
  options += " -c lock_timeout=" + std::to_string(config.lock_timeout_ms);
  if (config.has_pinned_plans) {
    options +=
        " -c enable_seqscan=off -c enable_bitmapscan=off -c enable_hashjoin=off -c enable_mergejoin=off"
        " -c plan_cache_mode=force_generic_plan";
  }
  if (config.is_planned_each_time) options += " -c plan_cache_mode=force_custom_plan";
  // Tocsin's options come last and win over those in the URL: correctness depends on them.
  k["options"] = k["options"].empty() ? options : k["options"] + " " + options;
  if (!has_settings) k.erase("options");
  std::string text;
  for (const auto& [name, value] : k) text += name + "=" + quoted(value) + " ";
  return text;
}

Connected open_connection(const SessionConfig& config, Duration at_most) {
  const auto connect = [&](bool has_settings) {
    const auto text = connection_string(config, has_settings);
    if (!text) throw pqxx::broken_connection(text.error().message);
    return std::make_unique<pqxx::connection>(*text);
  };
  Connected opened;
  try {
    opened.connection = connect(true);
  } catch (const pqxx::broken_connection& error) {
    // By text, because libpq keeps no SQLSTATE of a refusal to connect. Poolers do not translate it.
    if (std::string_view(error.what()).find("unsupported startup parameter") == std::string_view::npos) throw;
    opened.connection = connect(false);
  }
  // The detail of a refused row holds its values: keys and attributes of jobs, which no log may have.
  opened.connection->set_verbosity(pqxx::connection_base::terse);
  WatchedCall call(opened.connection->sock(), in_ms(patience(config), at_most));
  forbid_reconnect(*opened.connection);
  pqxx::nontransaction tx(*opened.connection);
  const auto row = tx.exec1(sql::statement(config.expected ? "new_session" : "new_session_anywhere"));
  if (config.expected) refuse_another(*config.expected, {row[3].as<std::int64_t>(), row[4].as<std::int64_t>()});
  opened.is_pooled = row[0].is_null();
  opened.process = {row[1].as<std::int64_t>(), row[2].c_str()};
  // Times are read as text. Poolers keep these two for each client.
  if (opened.is_pooled) tx.exec0("SET timezone = 'UTC'; SET datestyle = 'ISO'");
  return opened;
}

Result<std::string> database_name(const std::string& url) {
  auto keywords = parse(url);
  if (!keywords) return keywords.error();
  Keywords& k = *keywords;
  std::string name = k["host"].empty() ? (k["hostaddr"].empty() ? "local" : k["hostaddr"]) : k["host"];
  if (!k["port"].empty()) name += ":" + k["port"];
  return name + "/" + (k["dbname"].empty() ? k["user"] : k["dbname"]);
}

void Session::disconnect() {
  connection_.reset();
  prepared_.clear();
}

std::optional<Error> Session::connect() {
  SessionConfig config = config_;
  const auto longest = std::chrono::ceil<std::chrono::seconds>(limit_).count();
  config.connect_timeout_s =
      static_cast<int>(std::clamp<std::int64_t>(longest, kLeastConnectTime, config.connect_timeout_s));
  if (const auto text = connection_string(config); !text) return text.error();
  try {
    prepared_.clear();
    Connected opened = open_connection(config, limit_);
    server_error_.watch(raw(*opened.connection));
    if (auto error = settle_doubt(opened)) return error;
    connection_ = std::move(opened.connection);
    is_pooled_ = opened.is_pooled;
    process_ = std::move(opened.process);
    ++connections_;
    return {};
  } catch (const AnotherDatabase& e) {
    connection_.reset();
    return Error{ErrorCode::unavailable, said(e), ""};
  } catch (const std::exception& e) {
    connection_.reset();
    return Error{ErrorCode::unavailable, said(e), kUnreachable};
  }
}

std::optional<Error> Session::settle_doubt(const Connected& opened) {
  if (!end_unfinished(*opened.connection))
    return Error{ErrorCode::unavailable, "the server has not ended the call before, which was given up", ""};
  if (!is_in_doubt_ || !config_.waits_for_standby || config_.is_any_server) return {};
  try {
    WatchedCall call(opened.connection->sock(), in_ms(patience(config_), limit_));
    server_error_.forget_cancelled_wait();
    pqxx::nontransaction(*opened.connection).exec(sql::statement("wait_for_standby"));
    is_in_doubt_ = server_error_.has_cancelled_wait();
  } catch (const std::exception& e) {
    // Waits on: the next try must not add one more process that waits.
    if (!opened.is_pooled) unfinished_ = {opened.process, std::chrono::steady_clock::now() + kUnfinishedFor};
    return Error{ErrorCode::unavailable, "commits are not confirmed: " + said(e), ""};
  }
  if (is_in_doubt_) return Error{ErrorCode::unavailable, kWaitCancelled, ""};
  return {};
}

bool Session::end_unfinished(pqxx::connection& connection) {
  if (!unfinished_) return true;
  try {
    WatchedCall call(connection.sock(), in_ms(patience(config_), limit_));
    pqxx::nontransaction tx(connection);
    const auto left = tx.exec_params1(sql::statement("end_server_process"), unfinished_->process.pid,
                                      unfinished_->process.started_at);
    const bool is_replicating = left[0].as<int>() > 0, is_running = left[1].as<int>() > 0;
    if (is_replicating || (is_running && std::chrono::steady_clock::now() < unfinished_->until)) return false;
  } catch (const pqxx::sql_error&) {
    // Not allowed to: what it does ends by itself.
  }
  unfinished_.reset();
  return true;
}

bool Session::is_dead() {
  if (!connection_->is_open() || is_closed_by_server(connection_->sock())) return true;
  if (std::chrono::steady_clock::now() - used_at_ < config_.idle_for) return false;
  try {
    WatchedCall call(connection_->sock(), in_ms(kProbe, limit_));
    pqxx::nontransaction(*connection_).exec("SELECT 1");
    return false;
  } catch (const std::exception&) {
    return true;
  }
}

std::optional<Error> Session::guarded(bool is_write, const std::function<void(pqxx::connection&)>& work,
                                      Duration more) {
  if (connection_ && is_dead()) disconnect();
  if (!connection_) {
    if (auto error = connect()) return error;
  }
  struct Used {
    std::chrono::steady_clock::time_point& at;
    ~Used() { at = std::chrono::steady_clock::now(); }
  } used{used_at_};
  std::optional<Error> error;
  bool is_lost = false;  // its answer
  const auto lose = [&](const std::exception& e) {
    is_lost = true;
    error = Error{is_write ? ErrorCode::in_doubt : ErrorCode::unavailable, said(e), ""};
  };
  try {
    {
      WatchedCall call(connection_->sock(), in_ms(patience(config_) + more, limit_));
      server_error_.forget_cancelled_wait();
      work(*connection_);
    }
    if (server_error_.has_cancelled_wait()) throw pqxx::in_doubt_error(kWaitCancelled);
    if (config_.is_any_server || !is_demoted(*connection_)) return {};
    // What was read may be out of date, and later reads here, too. A write has happened.
    disconnect();
    if (is_write) return {};
    return Error{ErrorCode::unavailable, "the server has become read-only: another one may have taken its place", ""};
    // in_doubt_error and statement_completion_unknown have bases that mean something else: they come first.
  } catch (const pqxx::in_doubt_error& e) {
    lose(e);
  } catch (const pqxx::statement_completion_unknown& e) {
    lose(e);
  } catch (const pqxx::broken_connection& e) {
    lose(e);
  } catch (const pqxx::transaction_rollback& e) {
    error = from_refusal("40000", false, is_write, said(e));  // a failed serialization or a deadlock; it has no code
  } catch (const pqxx::insufficient_privilege& e) {
    error = from_refusal("42501", false, is_write, said(e));  // the exception has no code
  } catch (const pqxx::sql_error& e) {
    const std::string& state = e.sqlstate();  // of Refused and its like, the server knows nothing
    const bool has_no_partition = state == server_error_.sql_state() && server_error_.has_no_partition();
    error = from_refusal(state, has_no_partition, is_write, said(e));
  } catch (const std::exception& e) {
    lose(e);
  }
  // A statement before the one that failed may have committed, also one of a read: nextval() commits, too.
  const bool is_wait_cancelled = server_error_.has_cancelled_wait();
  const bool is_in_doubt = error->code == ErrorCode::in_doubt;
  is_in_doubt_ |= is_in_doubt || is_wait_cancelled;
  if ((is_in_doubt || is_lost) && !is_pooled_)
    unfinished_ = {process_, std::chrono::steady_clock::now() + kUnfinishedFor};
  // After other failures the state of the connection is unknown, and a new one is cheap. Refusals of rows and locks,
  // and statement time-outs, leave it sound.
  const bool is_sound = error->field == kTooSlow || error->field == kRefused;
  if (is_wait_cancelled || (!is_sound && (error->code == ErrorCode::unavailable || is_in_doubt))) disconnect();
  return error;
}

const Statement& Session::prepared(const std::string& name, const std::function<std::string()>& sql) {
  auto it = prepared_.find(name);
  if (it == prepared_.end()) {
    const Statement statement{is_pooled_ ? sql() : name, !is_pooled_};
    if (!is_pooled_) connection_->prepare(name, sql());
    it = prepared_.emplace(name, statement).first;
  }
  return it->second;
}

const Statement& Session::prepared(const char* name) {
  return prepared(name, [=] { return sql::statement(name); });
}

}  // namespace tocsin
