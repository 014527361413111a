// HintSender: notifies other nodes of jobs that are due soon in shards that those nodes own, so that the jobs need not
// wait for a scan. It sends the notification that tocsin.create_job sends, NOTIFY tocsin_due; hints that arrive during
// one share the next. Owned by Database (node/database.h), which pushes jobs that this node has created, changed or
// released.
#pragma once

#include <functional>
#include <vector>

#include "base/mutex.h"
#include "base/worker_thread.h"
#include "ports/job_store.h"
#include "postgres/session.h"

namespace tocsin {

// Thread: push any; the rest owner only (the Database's).
class HintSender {
 public:
  // Starts the thread. `on_failure`: called on it when a notification failed; the hints of that notification are lost.
  HintSender(const SessionConfig& session, std::function<void(const Error&)> on_failure);
  ~HintSender() { stop(); }

  // Queues a hint and returns at once. The hint is dropped if 10,000 wait already, and after stop(): a scan finds the
  // job.
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
