// RequestPool: threads for requests to one database that are not written in batches, such as those for types, lists and
// reports. Each thread has two sessions of its own, one with pinned plans for single jobs and one without for lists and
// reports, and runs one piece of work after the other. A Database (node/database.h) has four pools: for writes and
// short reads, for slow reads, for writes that wait for locks of other transactions, and for retries of types. The
// threads are plain std::threads, because all threads of a pool share one queue, and a stop waits until it is empty.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "api/backend.h"
#include "base/mutex.h"
#include "postgres/session.h"

namespace tocsin {

// Thread: post any; the rest owner only.
class RequestPool {
 public:
  // The stores return Errors while the database is down. Must not throw: the process would end.
  using Work = std::function<void(Stores&)>;
  // Starts the threads. `database_id`: for Stores. `shards`: of the whole installation. `capacity`: pieces of work that
  // may wait. `waited`: called on the pool's threads, several at once, with how long each piece of work was queued.
  RequestPool(DatabaseId database_id, const SessionConfig& session, int shards, int threads, std::size_t capacity,
              const Clock& clock, std::function<void(Duration)> waited);
  ~RequestPool() { stop(); }
  bool post(Work work);  // false: full or stopped, `work` will not run
  void stop();           // refuses new work; returns when all accepted work is done

 private:
  void run(SessionConfig config, int shards);

  const DatabaseId database_id_;
  struct Posted {
    Work work;
    MonoTime at;
  };

  const std::size_t capacity_;
  const Clock& clock_;
  const std::function<void(Duration)> waited_;
  Mutex mutex_;
  CondVar ready_;
  std::deque<Posted> queue_ TOCSIN_GUARDED_BY(mutex_);
  bool is_stopping_ TOCSIN_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace tocsin
