// Publisher: publishes the jobs of one type to a broker, many at a time, on a connection and a thread of its own.
// BrokerKind makes and stops it; the type's handler calls publish() for each attempt. An attempt ends as done when the
// broker has confirmed its message; otherwise as a retry with the reason, or as not started. The first publish() starts
// the thread. It is a plain std::thread, because it waits for the broker's socket and for messages at once; a file
// descriptor wakes it.
//
// Guarantees
//  - Done only after the broker's confirmation. An attempt is a retry if its message was refused, was on a connection
//    that broke, or was not confirmed within nine tenths of the rest of its lease at publish(). A message of a retried
//    attempt may have arrived; its id stays the same. One message that is not confirmed in time drops the connection,
//    so all messages in flight are retried.
//  - An attempt that waited past its start_by is not started, which does not count. While no connection can be made, or
//    the broker takes no messages, all waiting attempts are retried at once, which counts.
//  - At most kMostInFlight messages are unconfirmed. At most kMostWaiting wait for the thread to take them; further
//    ones are not started. Messages that the thread has taken and not sent are bounded only by the start pool of the
//    handler.
//  - The connection is made when there is a message to send, and early enough that a failure can be recorded before the
//    lease ends. While it cannot be made, attempts fail at once with the reason. The first new try may come at once,
//    later ones 0.1 s to 5 s apart, until a message is confirmed.
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

// Counts for the metrics, shared by all publishers of a broker kind.
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

  // `target`: names the broker in errors, without secrets. REQUIRES: `clock` outlives the object.
  Publisher(std::string target, LinkMaker make_link, const Clock& clock, std::shared_ptr<PublisherCounts> counts);
  ~Publisher();  // stop(0)
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  // Returns at once. `finish` is called once, in this call or on the publisher's thread. `lease_deadline`, `start_by`:
  // as in ClaimedJob.
  void publish(BrokerMessage message, MonoTime lease_deadline, MonoTime start_by, Handler::Finish finish);

  // For the end of the type's handler: the thread sends the messages that it has, and ends. REQUIRES: no publish()
  // after it.
  void retire();
  bool has_ended() const { return has_ended_; }  // the thread has ended, or none was started before retire()
  EndpointInfo info() const;                     // `kind` is left empty

  // Waits up to `grace` for messages under way. Then ends the thread; all other attempts, and later ones, end as a
  // retry "shutting down".
  void stop(Duration grace);

 private:
  struct Item {
    BrokerMessage message;
    MonoTime deadline{}, start_by{};  // latest times of the confirmation, and of sending
    Handler::Finish finish;
  };

  bool start_thread() TOCSIN_REQUIRES(mutex_);  // false: the machine has no more threads
  void run();
  bool take();     // moves accepted_ to waiting_; false: the thread must end
  bool connect();  // false: it failed, and all waiting attempts are retried; or stopping
  std::chrono::milliseconds time_to_connect(MonoTime now) const;  // REQUIRES: something waits
  void send();
  void poll();
  void settle(const std::vector<Verdict>& verdicts);
  void lose(const Error& error);  // the connection broke or was not made: retries all in flight
  void expire(MonoTime now);      // retries messages not confirmed in time, and drops the connection
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
  int wake_fd_ = -1;  // opened before the thread starts

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

  // For display: the last failure.
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
