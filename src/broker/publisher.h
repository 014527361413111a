// Publisher: publishes the jobs of one type to a broker, on a connection and a thread of its own, many at a time. Made
// and stopped by BrokerKind; the type's handler calls publish() for each attempt. An attempt ends as done when the
// broker has confirmed its message, else as a retry with the reason or as not started. The thread is no WorkerThread:
// it waits for the broker's socket and for messages at once, so a file descriptor wakes it.
//
// Guarantees
//  - Done only after the broker's confirmation. Refused, not confirmed in nine tenths of the lease (of what is left of
//    it at publish()), or sent on a connection that broke: retry. What is retried may have arrived; its id is the same.
//  - Nothing is sent after the start_by of its attempt: an attempt that waited until then is not started and does not
//    count. If no connection can be made or the broker takes no messages, waiting attempts are retried, which counts.
//  - At most kMostInFlight messages are unconfirmed. At most kMostWaiting wait for the thread to take them; more are
//    not started. How many the thread has taken and not sent is bounded by the caller's start pool only.
//  - The connection is made when there is a message to send, and early enough before the lease ends that a failure can
//    still be recorded. While it cannot be made, attempts fail at once with the reason. The first new try may come at
//    once, later ones 0.1 s to 5 s apart, until a message is confirmed.
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

// Shared by all publishers of a broker kind, for the metrics.
struct PublisherCounts {
  std::atomic<std::int64_t> confirmed = 0, refused = 0;  // attempts since the start: done, retry
  std::atomic<std::int64_t> connections = 0;             // open now
};

// The data members stand in three groups: shared under the lock, for display, and the thread's own.
// Thread: publish, retire, has_ended and info any; the rest owner only (BrokerKind's).
class Publisher {
 public:
  static constexpr std::size_t kMostInFlight = 1024;
  static constexpr std::size_t kMostWaiting = 4096;

  // `target` names the broker in errors, without secrets. REQUIRES: `clock` outlives it.
  Publisher(std::string target, LinkMaker make_link, const Clock& clock, std::shared_ptr<PublisherCounts> counts);
  ~Publisher();  // stop(0)
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  // Returns at once; `finish` is called once, here or on the publisher's thread. Times: as ClaimedJob's.
  void publish(BrokerMessage message, MonoTime lease_deadline, MonoTime start_by, Handler::Finish finish);

  // For the end of the type's handler: the thread ends after the messages it has. REQUIRES: no publish() any more.
  void retire();
  bool has_ended() const { return has_ended_; }  // the thread has ended, or none was started before retire()
  EndpointInfo info() const;                     // `kind` is left empty

  // Waits up to `grace` for messages under way; then ends the thread and every attempt that is left with a retry
  // "shutting down", as every later one.
  void stop(Duration grace);

 private:
  struct Item {
    BrokerMessage message;
    MonoTime deadline{}, start_by{};  // latest time of the confirmation; of sending
    Handler::Finish finish;
  };

  bool start_thread() TOCSIN_REQUIRES(mutex_);  // false: the machine has no more threads
  void run();
  bool take();     // moves accepted_ to waiting_; false: the thread's work is over
  bool connect();  // false: it failed, and all that waits is retried; or stopping
  std::chrono::milliseconds time_to_connect(MonoTime now) const;  // REQUIRES: something waits
  void send();
  void poll();
  void settle(const std::vector<Verdict>& verdicts);
  void lose(const Error& error);  // the connection broke or could not be made: retries all that is in flight
  void expire(MonoTime now);      // retries what was not confirmed in time, and drops the connection then
  void refuse(const Handler::Finish& finish, const std::string& why);  // ends an attempt as a retry
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
  bool is_open_ = false;                    // link_ is counted in PublisherCounts::connections
  int failures_ = 0;                        // since the last confirmation
  std::string last_failure_;
};

}  // namespace tocsin
