// RetryQueue: holds requests that failed because their shard is moving or has moved to another database, or whose job
// is locked and may be in a moving shard. NodeBackend (node/node_backend.h) pushes them. Each is tried again about 20
// ms after its push, together with all that wait; by then the node may have read the new shard map.
#pragma once

#include <functional>
#include <vector>

#include "base/mutex.h"
#include "base/worker_thread.h"

namespace tocsin {

// Attempts run on the queue's own thread, one after the other. A slow one delays the others, so attempts must neither
// block nor throw. An attempt that is refused again may push another one. Thread: push any; the rest owner only.
class RetryQueue {
 public:
  RetryQueue();  // starts the thread
  ~RetryQueue() { stop(); }

  // False: the queue is full (20,000 wait) or stopped; `attempt` is not called.
  bool push(std::function<void()> attempt);
  // Runs the attempts that still wait, refuses new ones and ends the thread. May be called again.
  void stop() { worker_.stop(); }

 private:
  void run();
  std::vector<std::function<void()>> take();

  Mutex mutex_;
  std::vector<std::function<void()>> waiting_ TOCSIN_GUARDED_BY(mutex_);
  WorkerThread worker_;
};

}  // namespace tocsin
