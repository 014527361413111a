// LoopThread: the thread of one stage (base/stage.h). It calls step(), then waits until the time that step() returned
// or until wake(), and so on until stop(). Owned by the part of the node that has the stage; the simulator uses fibers.
#pragma once

#include <atomic>
#include <functional>

#include "base/stage.h"
#include "base/worker_thread.h"

namespace tocsin {

// Thread: start, stop and destructor owner only; the rest any.
class LoopThread final : public Waker {
 public:
  // Called after each step, on the stage's thread, with the duration of the step. Not empty.
  using OnStep = std::function<void(const char* stage, Duration took)>;
  // REQUIRES: `stage` and `clock` outlive it; `clock` reads the steady clock, by which the thread waits (SystemClock).
  LoopThread(Stage& stage, const Clock& clock, OnStep on_step)
      : stage_(stage), clock_(clock), on_step_(std::move(on_step)) {}
  ~LoopThread() override { stop(); }

  void start();                    // once
  void stop() { worker_.stop(); }  // waits for the step that runs now; may be repeated
  void wake() override { worker_.wake(); }

  const char* name() const { return stage_.name(); }
  // How long the step that runs now has been running; zero between steps. /readyz reports a stage that hangs.
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
