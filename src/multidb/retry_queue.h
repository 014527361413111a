// The retry queue of requests that a moving shard has refused: each is repeated 20 ms later, when the node may have
// read the new shard map.
#pragma once

#include <functional>
#include <vector>

#include "base/mutex.h"
#include "base/worker_thread.h"

namespace tocsin {

// Thread: push any; the rest owner only. Attempts run on the queue's own thread.
class RetryQueue {
 public:
  RetryQueue();
  ~RetryQueue() { stop(); }

  // False: the queue is full or stopped; `attempt` will not be called.
  bool push(std::function<void()> attempt);
  // Runs all waiting attempts once more and ends the thread.
  void stop() { worker_.stop(); }

 private:
  void run();
  std::vector<std::function<void()>> take();

  Mutex mutex_;
  std::vector<std::function<void()>> waiting_ TOCSIN_GUARDED_BY(mutex_);
  WorkerThread worker_;
};

}  // namespace tocsin
