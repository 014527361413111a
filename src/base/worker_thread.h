// WorkerThread: a thread with a loop that can be woken and stopped.
//
//   worker_.start("relay", [this] { while (worker_.wait_for(kPoll)) step(); });
//
// Thread: wake, request_stop and is_stopping any; the waits the thread itself; the rest owner only.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/waker.h"

namespace tocsin {

class WorkerThread final : public Waker {
 public:
  WorkerThread() = default;
  ~WorkerThread() override { stop(); }
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  // Runs `work` on a thread of its own. `name`: at most 15 characters, else it is ignored. An exception of `work` ends
  // the process. REQUIRES: called once.
  void start(std::string name, std::function<void()> work);

  void wake() override;
  void request_stop();
  // Requests the stop and waits for the end of `work`. May be called again, and without start().
  void stop();

  bool is_stopping() const;
  // Return when the thread is woken (at once if it was woken since the last wait), must stop, or the time is over.
  // False: it must stop.
  bool wait();
  bool wait_for(std::chrono::microseconds length);
  bool wait_until(std::chrono::steady_clock::time_point end);
  // Returns after this time, or when the thread must stop. A wake does not shorten it and counts for the next wait.
  // False: it must stop.
  bool pause(std::chrono::microseconds length);
  // Discards earlier wakes, because the caller now does the work that they announced. False: the thread must stop.
  bool forget_wakes();

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  bool is_woken_ TOCSIN_GUARDED_BY(mutex_) = false;
  bool is_stopping_ TOCSIN_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tocsin
