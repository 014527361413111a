#include "base/loop_thread.h"

#include <sys/prctl.h>

#include <chrono>

namespace tocsin {

void LoopThread::start() {
  worker_.start(stage_.name(), [this] { run(); });
}

Duration LoopThread::stuck_for(MonoTime now) const {
  const auto began = step_began_.load(std::memory_order_relaxed);
  return began == 0 ? Duration(0) : now - MonoTime(Duration(began));
}

void LoopThread::run() {
  // The kernel may delay a timer by its slack, 50 us by default: a tenth of a tick.
  prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
  while (worker_.forget_wakes()) {
    const MonoTime now = clock_.now();
    step_began_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
    const MonoTime next = stage_.step(now);
    step_began_.store(0, std::memory_order_relaxed);
    on_step_(stage_.name(), clock_.now() - now);
    if (next == kWhenWoken)
      worker_.wait();
    else if (next > now)
      worker_.wait_until(std::chrono::steady_clock::time_point(next.time_since_epoch()));
  }
}

}  // namespace tocsin
