// LoopThread: gives a stage (base/stage.h) a thread. It calls step(), then waits until the time that step() returned,
// or until it is woken.
#pragma once

#include <atomic>
#include <functional>

#include "base/stage.h"
#include "base/worker_thread.h"

namespace tocsin {

// Thread: start, stop and destructor owner only; wake any.
class LoopThread final : public Waker {
 public:
  // Called after each step, on this thread, with the duration of the step.
  using OnStep = std::function<void(const char* stage, Duration took)>;
  LoopThread(Stage& stage, const Clock& clock, OnStep on_step)
      : stage_(stage), clock_(clock), on_step_(std::move(on_step)) {}
  ~LoopThread() override { stop(); }

  void start();
  void stop() { worker_.stop(); }  // after the step that runs now
  void wake() override { worker_.wake(); }

  const char* name() const { return stage_.name(); }
  // How long the step that runs now has been running; zero between steps. For readiness: a stage that hangs.
  Duration stuck_for(MonoTime now) const;

 private:
  void run();

  Stage& stage_;
  const Clock& clock_;
  const OnStep on_step_;
  std::atomic<MonoTime::rep> step_began_{0};
  WorkerThread worker_;
};

}  // namespace tocsin
