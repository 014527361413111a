// Receives the notifications (NOTIFY) of one database: jobs due soon, new outbox entries, changes of the type registry
// and of the membership. A lost notification delays work until the next scan or poll, and loses nothing.
// Thread: owner only, except interrupt() (any).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "ports/job_store.h"
#include "postgres/session.h"

namespace tocsin {

struct Heard {
  std::vector<Candidate> due;  // jobs created or moved by other processes, as read from their rows
  bool is_types_changed = false;
  bool is_members_changed = false;
  bool is_outbox_filled = false;  // only with hears_outbox
  bool cannot_listen = false;     // LISTEN is not supported: a pooler shares the session. Notifications never come
  bool is_reconnected = false;    // earlier notifications may be lost: read everything again
};

class PgListener {
 public:
  // `is_wanted`: the shards whose jobs are looked up. `hears_outbox`: listens for outbox entries, too.
  PgListener(SessionConfig config, std::function<bool(Shard)> is_wanted, bool hears_outbox = false);
  ~PgListener();

  // Waits up to `timeout` (rounded to milliseconds). Error unavailable: not connected; call again later.
  Result<Heard> wait(Duration timeout);
  // Ends the current wait, or the next one, at once. Thread: any.
  void interrupt();

 private:
  class Receiver;
  void wait_for_more(Duration timeout);
  void look_up_due();
  void ask_now_and_then();

  const SessionConfig config_;
  const std::function<bool(Shard)> is_wanted_;
  const bool hears_outbox_;
  const int interrupt_fd_;
  std::unique_ptr<pqxx::connection> connection_;
  std::vector<std::unique_ptr<Receiver>> receivers_;
  Heard heard_;
  int backend_ = 0;
  std::chrono::steady_clock::time_point asked_;
};

// The payload of a NOTIFY tocsin_due: "job_id type_id fire_at_us", several joined by ';'. Malformed parts are skipped:
// anyone may notify.
std::vector<Candidate> parse_due(std::string_view payload);

// Writes such a payload; PostgreSQL takes up to 8,000 bytes. REQUIRES: at most kMaxDuePerNotify jobs.
inline constexpr std::size_t kMaxDuePerNotify = 100;
std::string due_payload(std::span<const Candidate> jobs);

}  // namespace tocsin
