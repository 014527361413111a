// RetryQueue: the retry queue of requests that a moving shard has refused. NodeBackend pushes them; a round repeats all
// that wait, 20 ms after the first of them was pushed, when the node may have read the new shard map.
#pragma once

#include <functional>
#include <vector>

#include "base/mutex.h"
#include "base/worker_thread.h"

namespace tocsin {

// Attempts run on the queue's own thread, one after the other: they must neither block nor throw. An attempt that is
// refused again may push another. Thread: push any; the rest owner only.
class RetryQueue {
 public:
  RetryQueue();  // starts the thread
  ~RetryQueue() { stop(); }

  // False: the queue is full (20,000 wait) or stopped; `attempt` will not be called.
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
