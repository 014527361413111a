#include "postgres/pg_listener.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <sstream>
#include <stdexcept>
#include <system_error>

#include "postgres/call_watch.h"
#include "postgres/sql_text.h"
#include "postgres/values.h"

namespace tocsin {
namespace {

// A dead connection looks like one without notifications: a statement shows which.
constexpr std::chrono::seconds kAskEvery(5);

}  // namespace

class PgListener::Receiver final : public pqxx::notification_receiver {
 public:
  Receiver(pqxx::connection& connection, const std::string& channel, Heard& heard)
      : pqxx::notification_receiver(connection, channel), heard_(heard) {}

  void operator()(const std::string& payload, int) override {
    if (channel() == "tocsin_type") {
      heard_.is_types_changed = true;
      return;
    }
    if (channel() == "tocsin_member") {
      heard_.is_members_changed = true;
      return;
    }
    if (channel() == "tocsin_outbox") {
      heard_.is_outbox_filled = true;
      return;
    }
    const auto due = parse_due(payload);
    heard_.due.insert(heard_.due.end(), due.begin(), due.end());
  }

 private:
  Heard& heard_;
};

PgListener::PgListener(SessionConfig config, std::function<bool(Shard)> is_wanted, bool hears_outbox)
    : config_(std::move(config)),
      is_wanted_(std::move(is_wanted)),
      hears_outbox_(hears_outbox),
      interrupt_fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (interrupt_fd_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

PgListener::~PgListener() {
  receivers_.clear();
  ::close(interrupt_fd_);
}

void PgListener::interrupt() { [[maybe_unused]] const int ignored = ::eventfd_write(interrupt_fd_, 1); }

Result<Heard> PgListener::wait(Duration timeout) {
  heard_ = {};
  try {
    if (!connection_) {
      Connected opened = open_connection(config_);
      heard_.cannot_listen = opened.is_pooled;
      if (heard_.cannot_listen) return heard_;
      connection_ = std::move(opened.connection);
      WatchedCall call(connection_->sock(), patience(config_));
      const auto hear = [this](const char* channel) {
        receivers_.push_back(std::make_unique<Receiver>(*connection_, channel, heard_));
      };
      for (const char* channel : {"tocsin_due", "tocsin_type", "tocsin_member"}) hear(channel);
      if (hears_outbox_) hear("tocsin_outbox");
      backend_ = connection_->backendpid();
      asked_ = std::chrono::steady_clock::now();
      heard_.is_reconnected = true;
      return heard_;
    }
    // Notifications that came with an answer are in libpq's buffer, not on the socket.
    if (connection_->get_notifs() == 0) {
      const auto until_asked = std::chrono::ceil<Duration>(asked_ + kAskEvery - std::chrono::steady_clock::now());
      wait_for_more(std::clamp(until_asked, Duration(0), timeout));
      connection_->get_notifs();
    }
    // libpqxx reconnects silently; notifications sent meanwhile are lost.
    if (connection_->backendpid() != backend_) {
      backend_ = connection_->backendpid();
      heard_.is_reconnected = true;
    }
    look_up_due();
    check_server();
    return heard_;
  } catch (const std::exception& e) {
    receivers_.clear();
    connection_.reset();
    return Error{ErrorCode::unavailable, said(e), ""};
  }
}

void PgListener::wait_for_more(Duration timeout) {
  pollfd fds[] = {{connection_->sock(), POLLIN, 0}, {interrupt_fd_, POLLIN, 0}};
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(timeout);
  ::poll(fds, std::size(fds), static_cast<int>(ms.count()));
  eventfd_t ignored = 0;
  ::eventfd_read(interrupt_fd_, &ignored);
}

void PgListener::check_server() {
  const auto now = std::chrono::steady_clock::now();
  if (now - asked_ < kAskEvery) return;
  asked_ = now;
  WatchedCall call(connection_->sock(), kAskEvery);
  pqxx::nontransaction(*connection_).exec("SELECT 1");
  // Notifications are now sent on the new primary.
  if (is_demoted(*connection_)) throw std::runtime_error("the server has become read-only");
}

void PgListener::look_up_due() {
  std::erase_if(heard_.due, [this](const Candidate& job) { return !is_wanted_(shard_of(job.job_id)); });
  if (heard_.due.empty()) return;
  JobArrays keys;
  for (const Candidate& job : heard_.due) keys.add(job.job_id);
  heard_.due.clear();
  WatchedCall call(connection_->sock(), patience(config_));
  pqxx::nontransaction tx(*connection_);
  const auto rows = tx.exec_params(sql::statement("due_by_id"), keys.shards.literal(), keys.jobs.literal());
  for (const auto& row : rows) heard_.due.push_back({row[0].as<JobId>(), row[1].as<TypeId>(), time_of(row[2])});
}

std::vector<Candidate> parse_due(std::string_view payload) {
  std::vector<Candidate> due;
  std::istringstream parts{std::string(payload)};
  for (std::string part; std::getline(parts, part, ';');) {
    std::istringstream fields(part);
    Candidate job;
    std::int64_t fire_at_us = 0;
    if (fields >> job.job_id >> job.type_id >> fire_at_us && job.job_id > 0) {
      job.fire_at = WallTime(Duration(fire_at_us));
      due.push_back(job);
    }
  }
  return due;
}

std::string due_payload(std::span<const Candidate> jobs) {
  std::string text;
  for (const Candidate& job : jobs) {
    text += (text.empty() ? "" : ";") + std::to_string(job.job_id) + ' ' + std::to_string(job.type_id) + ' ' +
            std::to_string(job.fire_at.time_since_epoch().count());
  }
  return text;
}

}  // namespace tocsin
