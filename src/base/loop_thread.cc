#include "base/loop_thread.h"

#include <sys/prctl.h>

#include <chrono>

#include "base/thread_guard.h"

namespace tocsin {

void LoopThread::start() {
  thread_ = std::thread([this] { or_abort(stage_.name(), [this] { run(); }); });
}

void LoopThread::stop() {
  {
    std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  woken_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void LoopThread::wake() {
  {
    std::lock_guard lock(mutex_);
    if (is_woken_) return;
    is_woken_ = true;
  }
  woken_.notify_one();
}

Duration LoopThread::stuck_for(MonoTime now) const {
  const auto began = step_began_.load(std::memory_order_relaxed);
  return began == 0 ? Duration(0) : now - MonoTime(Duration(began));
}

void LoopThread::run() {
  // The kernel may delay a timer by its slack, 50 us by default: a tenth of a tick.
  prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    is_woken_ = false;
    lock.unlock();
    const MonoTime now = clock_.now();
    step_began_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
    const MonoTime next = stage_.step(now);
    step_began_.store(0, std::memory_order_relaxed);
    on_step_(stage_.name(), clock_.now() - now);
    lock.lock();
    const auto has_work = [this] { return is_woken_ || is_stopping_; };
    if (next == kWhenWoken) {
      woken_.wait(lock, has_work);
    } else if (next > now) {
      woken_.wait_until(lock, std::chrono::steady_clock::time_point(next.time_since_epoch()), has_work);
    }
  }
}

}  // namespace tocsin
