// Database threads for requests that are not written in batches: each has its own connections and runs one piece of
// work after the other.
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
class WorkPool {
 public:
  using Work = std::function<void(Stores&)>;  // must not throw: the process would end
  // `capacity`: pieces of work that may wait. `waited`: called with how long each piece of work waited for a thread.
  WorkPool(DatabaseId database_id, const SessionConfig& session, int shards, int threads, std::size_t capacity,
           const Clock& clock, std::function<void(Duration)> waited);
  ~WorkPool() { stop(); }
  bool post(Work work);  // false: full or stopped
  void stop();           // after all accepted work is done

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
