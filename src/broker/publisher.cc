#include "broker/publisher.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/assert.h"
#include "base/thread_guard.h"
#include "broker/peer.h"

namespace tocsin {
namespace {

using std::chrono::milliseconds;

constexpr Duration kNoRoomPause = std::chrono::seconds(1);
constexpr Duration kFirstPause = milliseconds(100), kLongestPause = std::chrono::seconds(5);
constexpr milliseconds kShortestConnect{200};
constexpr Duration kLongestPoll = std::chrono::seconds(1);

Duration pause_after(int failures) {
  return failures == 0 ? Duration(0) : std::min(kLongestPause, kFirstPause * (1 << std::min(failures - 1, 6)));
}

}  // namespace

Publisher::Publisher(std::string target, LinkMaker make_link, const Clock& clock,
                     std::shared_ptr<PublisherCounts> counts)
    : target_(std::move(target)), make_link_(std::move(make_link)), clock_(clock), counts_(std::move(counts)) {}

Publisher::~Publisher() {
  stop(Duration(0));
  if (wake_fd_ >= 0) ::close(wake_fd_);
}

void Publisher::publish(BrokerMessage message, MonoTime lease_deadline, MonoTime start_by, Handler::Finish finish) {
  // A tenth of the lease is left for writing the outcome.
  const MonoTime now = clock_.now();
  const MonoTime deadline = now + (lease_deadline - now) * 9 / 10;
  bool is_closed = false;
  {
    MutexLock lock(mutex_);
    is_closed = is_closed_;
    if (!is_closed && accepted_.size() < kMostWaiting) {
      const bool was_empty = accepted_.empty();
      if (is_running_ || start_thread()) {
        accepted_.push_back({std::move(message), deadline, start_by, std::move(finish)});
        if (was_empty) wake();
        return;
      }
    }
  }
  finish(is_closed ? Outcome::retry("shutting down") : Outcome::not_started(kNoRoomPause));
}

bool Publisher::start_thread() {
  if (wake_fd_ < 0) wake_fd_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_fd_ < 0) return false;  // the process has no more file descriptors
  try {
    thread_ = std::thread([this] { run_or_abort("publisher", [this] { run(); }); });
  } catch (const std::system_error&) {  // the machine has no more threads
    return false;
  }
  return is_running_ = true;
}

void Publisher::retire() {
  MutexLock lock(mutex_);
  is_retired_ = true;
  if (!is_running_) has_ended_ = true;
  wake();
}

void Publisher::stop(Duration grace) {
  {
    MutexLock lock(mutex_);
    is_closed_ = true;
    wake();
    const auto end = std::chrono::steady_clock::now() + grace;
    while (is_running_ && !has_ended_ && ended_.wait_until(mutex_, end)) {
    }
    is_stopping_ = true;
    if (link_) link_->interrupt();
    wake();
  }
  if (thread_.joinable()) thread_.join();
}

void Publisher::wake() const {
  if (wake_fd_ < 0) return;  // no thread has been started
  // A full counter is readable already.
  [[maybe_unused]] const int ignored = ::eventfd_write(wake_fd_, 1);
}

void Publisher::run() {
  while (take()) {
    if (!link_ && waiting_.empty()) {
      wait_for_work(std::chrono::hours(1));
    } else if (link_ || connect()) {
      send();
      poll();
    }
    expire(clock_.now());
    unconfirmed_ = in_flight_.size();
  }
  end_all("shutting down");
  if (std::exchange(is_open_, false)) --counts_->connections;
  is_connected_ = false;
  MutexLock lock(mutex_);
  link_.reset();
  has_ended_ = true;
  ended_.notify_all();
}

EndpointInfo Publisher::info() const {
  const auto failure = failure_.get();
  const bool has_failed = !failure->message.empty();
  EndpointInfo info{"",           target_,          is_connected_ ? "ok" : has_failed ? "unavailable" : "idle",
                    unconfirmed_, kMostInFlight,    {},
                    Duration(0),  failure->message, {}};
  if (has_failed) info.error_age = clock_.now() - failure->at;
  return info;
}

bool Publisher::take() {
  MutexLock lock(mutex_);
  std::move(accepted_.begin(), accepted_.end(), std::back_inserter(waiting_));
  accepted_.clear();
  const bool is_done = (is_retired_ || is_closed_) && waiting_.empty() && in_flight_.empty();
  return !is_stopping_ && !is_done;
}

// REQUIRES: a message waits for it.
bool Publisher::connect() {
  if (clock_.now() < next_try_) {
    refuse_waiting(last_failure_);
    return false;
  }
  std::shared_ptr<Link> link = make_link_();
  {
    MutexLock lock(mutex_);
    if (is_stopping_) return false;
    link_ = link;
  }
  if (const Status opened = link->open(wake_fd_, time_to_connect(clock_.now())); !opened) {
    lose(opened.error());
    refuse_waiting(last_failure_);
    return false;
  }
  ++counts_->connections;
  is_open_ = true;
  is_connected_ = true;
  return true;
}

// Short enough that the attempt of a broker that does not answer fails, with a reason, while the lease lasts.
milliseconds Publisher::time_to_connect(MonoTime now) const {
  const MonoTime deadline = std::ranges::min_element(waiting_, {}, &Item::deadline)->deadline;
  const auto half =
      std::chrono::duration_cast<milliseconds>((deadline - now) / 2);  // a name that is slow, then a silent peer
  return std::clamp(half, kShortestConnect, kConnectTimeout);
}

void Publisher::send() {
  while (!waiting_.empty()) {
    Item& item = waiting_.front();
    if (clock_.now() >= std::min(item.start_by, item.deadline)) {
      const auto finish = std::move(item.finish);
      waiting_.pop_front();
      finish(Outcome::not_started(kNoRoomPause));
      continue;
    }
    if (in_flight_.size() >= kMostInFlight) return;
    if (const std::string why = link_->blocked_because(); !why.empty()) return refuse_waiting(target_ + ": " + why);
    const std::uint64_t ticket = ++last_ticket_;
    next_expiry_ = std::min(next_expiry_, item.deadline);
    const auto sent = in_flight_.emplace(ticket, std::move(item)).first;
    waiting_.pop_front();
    const Status done = link_->send(ticket, sent->second.message);
    sent->second.message = {};  // it will not be sent again: only its outcome is awaited
    if (!done) return lose(done.error());
  }
}

void Publisher::poll() {
  if (!link_) return;
  std::vector<Verdict> verdicts;
  const Status polled = link_->poll(until_next_deadline(clock_.now()), verdicts);
  settle(verdicts);
  if (!polled) lose(polled.error());
}

void Publisher::settle(const std::vector<Verdict>& verdicts) {
  for (const Verdict& verdict : verdicts) {
    const auto found = in_flight_.find(verdict.ticket);
    if (found == in_flight_.end()) continue;  // timed out before
    const auto finish = std::move(found->second.finish);
    in_flight_.erase(found);
    if (!verdict.refusal.empty()) {
      refuse(finish, target_ + ": " + verdict.refusal);
      continue;
    }
    failures_ = 0;
    ++counts_->confirmed;
    finish(Outcome::done());
  }
}

// The connection is lost, or could not be made.
void Publisher::lose(const Error& error) {
  std::shared_ptr<Link> link;
  {
    MutexLock lock(mutex_);
    link.swap(link_);
  }
  last_failure_ = target_ + ": " + error.message;
  failure_.set(std::make_shared<const Failure>(Failure{error.message, clock_.now()}));
  is_connected_ = false;
  if (std::exchange(is_open_, false)) --counts_->connections;
  next_try_ = clock_.now() + pause_after(failures_++);
  auto unconfirmed = std::exchange(in_flight_, {});
  for (const auto& [ticket, item] : unconfirmed) refuse(item.finish, last_failure_ + " (before it was confirmed)");
  next_expiry_ = MonoTime::max();
}

void Publisher::expire(MonoTime now) {
  if (now < next_expiry_) return;
  next_expiry_ = MonoTime::max();
  const std::string trouble = link_ ? link_->trouble() : "";
  const std::string why = trouble.empty() ? "" : ": " + trouble;
  bool is_silent = false;
  for (auto it = in_flight_.begin(); it != in_flight_.end();) {
    if (now < it->second.deadline) {
      next_expiry_ = std::min(next_expiry_, it->second.deadline);
      ++it;
      continue;
    }
    const auto finish = std::move(it->second.finish);
    it = in_flight_.erase(it);
    refuse(finish, target_ + ": not confirmed in time" + why);
    is_silent = true;
  }
  // The link would accumulate unconfirmed messages, and one that confirms nothing for this long is useless.
  if (is_silent && link_) lose({ErrorCode::unavailable, "confirms nothing" + why, {}});
}

void Publisher::refuse(const Handler::Finish& finish, const std::string& why) {
  ++counts_->refused;
  finish(Outcome::retry(why));
}

void Publisher::refuse_waiting(const std::string& why) {
  for (const Item& item : std::exchange(waiting_, {})) refuse(item.finish, why);
}

void Publisher::end_all(const std::string& why) {
  for (const auto& [ticket, item] : std::exchange(in_flight_, {})) refuse(item.finish, why);
  refuse_waiting(why);
}

Duration Publisher::until_next_deadline(MonoTime now) const {
  MonoTime next = std::min(next_expiry_, now + kLongestPoll);
  if (!waiting_.empty()) next = std::min(next, waiting_.front().start_by);
  return std::max(Duration(0), next - now);
}

void Publisher::wait_for_work(Duration timeout) const {
  pollfd fd{wake_fd_, POLLIN, 0};
  const auto ms = std::chrono::ceil<milliseconds>(timeout).count();
  ::poll(&fd, 1, static_cast<int>(ms));
  eventfd_t ignored = 0;
  ::eventfd_read(wake_fd_, &ignored);
}

}  // namespace tocsin
