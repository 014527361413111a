// PgListener: receives the notifications (NOTIFY) of one database. Channels: tocsin_due (jobs due within the lookahead,
// 5 s), tocsin_outbox (jobs that SQL created here for a shard of another database), tocsin_type (the type registry has
// changed), tocsin_member (the membership has changed). A thread of DatabaseEngine calls wait() in a loop. A lost
// notification delays work until the next scan or poll, and loses nothing. Thread: owner only, except interrupt()
// (any).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "ports/job_store.h"
#include "postgres/session.h"

namespace tocsin {

struct Heard {
  std::vector<Candidate> due;  // live jobs that another node or SQL made due soon; as their rows are now
  bool is_types_changed = false;
  bool is_members_changed = false;
  bool is_outbox_filled = false;  // new entries; only with hears_outbox
  // A pooler shares the session, so notifications never come: do not call wait() again.
  bool cannot_listen = false;
  // The session is new, and earlier notifications may be lost: read everything again.
  bool is_reconnected = false;
};

class PgListener {
 public:
  // `is_wanted`: whether this node wants the jobs of a shard; the listener drops other jobs. Called in wait().
  // `hears_outbox`: also listens to tocsin_outbox.
  PgListener(SessionConfig config, std::function<bool(Shard)> is_wanted, bool hears_outbox = false);
  ~PgListener();

  // The first call, and the first after an Error, connects and returns. Other calls wait for notifications, up to
  // `timeout` and at most about 5 s. Then they read the rows of due jobs, and may check the server; each takes at most
  // the session's statement time-out. Error unavailable: not connected; call again later.
  Result<Heard> wait(Duration timeout);
  // Ends the current wait for notifications, or the next one, at once. Thread: any.
  void interrupt();

 private:
  class Receiver;
  void wait_for_more(Duration timeout);  // until a notification came, interrupt() was called, or the time is over
  void look_up_due();                    // replaces heard_.due by the wanted jobs, read from their rows
  void check_server();                   // every 5 s: executes a statement, to detect a dead or demoted server; throws

  const SessionConfig config_;
  const std::function<bool(Shard)> is_wanted_;
  const bool hears_outbox_;
  const int interrupt_fd_;
  std::unique_ptr<pqxx::connection> connection_;
  std::vector<std::unique_ptr<Receiver>> receivers_;
  Heard heard_;
  int backend_ = 0;                              // id of the server process
  std::chrono::steady_clock::time_point asked_;  // when check_server() last sent its statement
};

// Reads the payload of a NOTIFY tocsin_due: "job_id type_id fire_at_us" (microseconds since 1970 UTC), several joined
// by ';'. Skips malformed parts, because any role may notify. Thread: any.
std::vector<Candidate> parse_due(std::string_view payload);

// Writes such a payload. REQUIRES: at most kMaxDuePerNotify jobs, because PostgreSQL takes less than 8,000 bytes.
inline constexpr std::size_t kMaxDuePerNotify = 100;
std::string due_payload(std::span<const Candidate> jobs);

}  // namespace tocsin
