// WorkerPool: threads for tasks that may block (C++ and SQL handlers, name resolution), shared fairly between lanes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "tocsin/clock.h"

namespace tocsin {

// Each task belongs to a worker lane, a number that the caller chooses (such as the type of the job). Tasks of a worker
// lane start in the order given, and the worker lanes take turns. If all threads are busy, a worker lane without a
// running task gets a spare thread, if one is left. So it need not wait for worker lanes whose tasks block. A task must
// not throw: the process would end.
// Thread: try_run any; the rest owner only.
class WorkerPool {
 public:
  // REQUIRES: threads > 0. `capacity` counts waiting tasks of one lane, not running ones. Spare threads are started
  // when they are needed, and stay.
  WorkerPool(int threads, std::size_t capacity, int spare_threads = 0);
  ~WorkerPool();  // stop(0)
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  std::size_t threads() const;  // without spare ones

  // Does not block. False: the lane is full or the pool is stopped; `task` will not run.
  bool try_run(std::int64_t lane, std::function<void()> task);
  bool try_run(std::function<void()> task) { return try_run(0, std::move(task)); }

  // Refuses further tasks and waits up to `grace` for those accepted. True: all have run. False: what still waited is
  // discarded, and tasks still running are left to themselves on detached threads: they must own whatever they touch.
  bool stop(Duration grace);

 private:
  struct State;

  const std::shared_ptr<State> state_;  // shared with the threads, which may outlive the pool
};

}  // namespace tocsin
