// The retry queue of requests that a moving shard has refused: repeated shortly after, when the node has read the shard
// map again.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "tocsin/clock.h"

namespace tocsin {

// Thread: push any; the rest owner only. What is tried runs on a thread of its own.
class RetryQueue {
 public:
  RetryQueue();
  ~RetryQueue() { stop(); }

  // False: too many wait, or it is stopped; `attempt` will not be called.
  bool push(std::function<void()> attempt);
  // Tries everything once more.
  void stop();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable woken_;
  std::vector<std::function<void()>> waiting_;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace tocsin
