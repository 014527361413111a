// HintSender: notifies other nodes (NOTIFY tocsin_due, as tocsin.create_job does) of jobs due soon in shards that they
// own, so that these jobs need not wait for a scan. A Database has one and pushes jobs that this node has created,
// changed or released. Hints that arrive during one notification share the next.
#pragma once

#include <functional>
#include <vector>

#include "base/mutex.h"
#include "base/worker_thread.h"
#include "ports/job_store.h"
#include "postgres/session.h"

namespace tocsin {

// Thread: push any; the rest owner only.
class HintSender {
 public:
  // `on_failure`: called on the sender's thread when a notification failed; its hints are lost.
  HintSender(const SessionConfig& session, std::function<void(const Error&)> on_failure);
  ~HintSender() { stop(); }

  // Returns at once. Dropped when 10,000 wait already, and after stop(): the scan finds the job.
  void push(const Candidate& job);
  void stop() { worker_.stop(); }  // after sending the hints that wait

 private:
  static constexpr std::size_t kCapacity = 10'000;

  void run();
  void send(const std::vector<Candidate>& jobs);

  Session session_;
  const std::function<void(const Error&)> on_failure_;
  Mutex mutex_;
  std::vector<Candidate> jobs_ TOCSIN_GUARDED_BY(mutex_);
  WorkerThread worker_;
};

}  // namespace tocsin
