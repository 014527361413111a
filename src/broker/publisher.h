// Publisher: publishes the jobs of one type on a connection and a thread of its own, many at a time. An attempt ends
// when the broker has confirmed its message, or with a failure.
//
// Guarantees
//  - Done only after the broker's confirmation. Refused, not confirmed in nine tenths of the lease, or sent on a
//    connection that broke: retry, with the reason. What is retried may have arrived; its id is the same then.
//  - Nothing is sent after the start_by of its attempt. An attempt that could not be sent by then has not started and
//    does not count, unless no connection could be made or the broker takes no messages.
//  - Bounds: kMostInFlight messages are unconfirmed, kMostWaiting wait for the thread; more are not started.
//  - The connection is made when there is a message to send, and early enough before the lease ends that a failure can
//    still be recorded. While it cannot be made, attempts fail at once with the reason, and new tries come 0.1 s to 5 s
//    apart.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "base/latest.h"
#include "base/mutex.h"
#include "broker/link.h"
#include "core/endpoint_info.h"
#include "tocsin/handler.h"

namespace tocsin {

// Counters shared by all publishers of a kind.
struct PublisherCounts {
  std::atomic<std::int64_t> confirmed = 0, refused = 0, connections = 0;
};

// The data members stand in three groups: shared under the lock, for display, and the thread's own.
// Thread: publish, retire, has_ended and info any; the rest owner only.
class Publisher {
 public:
  static constexpr std::size_t kMostInFlight = 1024;
  static constexpr std::size_t kMostWaiting = 4096;

  // `target` names the broker in errors, without secrets.
  Publisher(std::string target, LinkMaker make_link, const Clock& clock, std::shared_ptr<PublisherCounts> counts);
  ~Publisher();  // stop(0)
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  // Returns at once; `finish` is called once, on any thread. Times: as ClaimedJob's.
  void publish(BrokerMessage message, MonoTime lease_deadline, MonoTime start_by, Handler::Finish finish);

  // The thread ends after the messages it has. REQUIRES: publish() is not called any more.
  void retire();
  bool has_ended() const { return has_ended_; }  // the thread has ended, or none was started before retire()
  EndpointInfo info() const;                     // `kind` is left empty

  // Waits up to `grace` for messages under way; then every attempt ends with a retry "shutting down", as does every
  // later one.
  void stop(Duration grace);

 private:
  struct Item {
    BrokerMessage message;
    MonoTime deadline{}, start_by{};
    Handler::Finish finish;
  };

  bool start_thread() TOCSIN_REQUIRES(mutex_);  // false: the machine has no more threads
  void run();
  bool take();  // false: the thread's work is over
  bool connect();
  std::chrono::milliseconds time_to_connect(MonoTime now) const;  // REQUIRES: something waits
  void send();
  void poll();
  void settle(const std::vector<Verdict>& verdicts);
  void lose(const Error& error);
  void expire(MonoTime now);
  void refuse(const Handler::Finish& finish, const std::string& why);
  void refuse_waiting(const std::string& why);
  void end_all(const std::string& why);
  void wait_for_work(Duration timeout) const;
  Duration until_next_deadline(MonoTime now) const;
  void wake() const;

  const std::string target_;
  const LinkMaker make_link_;
  const Clock& clock_;
  const std::shared_ptr<PublisherCounts> counts_;
  const int wake_fd_;

  Mutex mutex_;
  std::deque<Item> accepted_ TOCSIN_GUARDED_BY(mutex_);
  bool is_retired_ TOCSIN_GUARDED_BY(mutex_) = false;
  bool is_closed_ TOCSIN_GUARDED_BY(mutex_) = false;    // takes no more
  bool is_stopping_ TOCSIN_GUARDED_BY(mutex_) = false;  // ends at once
  bool is_running_ TOCSIN_GUARDED_BY(mutex_) = false;
  std::shared_ptr<Link> link_;  // not annotated: replaced under the lock, used by the thread without it
  std::thread thread_;
  CondVar ended_;
  std::atomic<bool> has_ended_{false};

  // For display.
  struct Failure {
    std::string message;
    MonoTime at{};
  };
  std::atomic<bool> is_connected_{false};
  std::atomic<std::size_t> unconfirmed_{0};
  Latest<Failure> failure_{std::make_shared<const Failure>()};

  // The thread's own.
  std::deque<Item> waiting_;
  std::map<std::uint64_t, Item> in_flight_;  // by ticket
  std::uint64_t last_ticket_ = 0;
  MonoTime next_expiry_ = MonoTime::max();  // no deadline in flight is earlier
  MonoTime next_try_{};                     // to connect
  bool is_open_ = false;
  int failures_ = 0;  // since the last confirmation
  std::string last_failure_;
};

}  // namespace tocsin
