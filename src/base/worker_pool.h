// A fixed number of threads for work that may block, with a bounded queue in front.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "tocsin/clock.h"

namespace tocsin {

// Tasks start in the order given. A task must not throw.
// Thread: try_run any; the rest owner only.
class WorkerPool {
 public:
  // REQUIRES: threads > 0. `capacity` counts waiting tasks, not running ones.
  WorkerPool(int threads, std::size_t capacity);
  ~WorkerPool();  // stop(0)
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  std::size_t threads() const { return threads_.size(); }

  // False: the queue is full or the pool is stopped; `task` will not run.
  bool try_run(std::function<void()> task);

  // Refuses further tasks and waits up to `grace` for those accepted. True: all have run. False: what still waited is
  // discarded, and tasks still running are left to themselves on detached threads: they must own whatever they touch.
  bool stop(Duration grace);

 private:
  struct State;
  static void work(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;  // shared with the threads, which may outlive the pool
  std::vector<std::thread> threads_;
};

}  // namespace tocsin
