// Gives a stage a thread: calls step(), waits until the time it asked for or until it is woken.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "base/stage.h"
#include "base/waker.h"

namespace tocsin {

// Thread: start, stop and destructor owner only; wake any.
class LoopThread final : public Waker {
 public:
  // `on_step`: told how long each step took.
  using OnStep = std::function<void(const char* stage, Duration took)>;
  LoopThread(Stage& stage, const Clock& clock, OnStep on_step)
      : stage_(stage), clock_(clock), on_step_(std::move(on_step)) {}
  ~LoopThread() override { stop(); }

  void start();
  void stop();  // after the step that runs now
  void wake() override;

  const char* name() const { return stage_.name(); }
  // How long the step that runs now has been running; zero between steps. For readiness: a stage that hangs.
  Duration stuck_for(MonoTime now) const;

 private:
  void run();

  Stage& stage_;
  const Clock& clock_;
  const OnStep on_step_;
  std::mutex mutex_;
  std::condition_variable woken_;
  bool is_woken_ = false;
  bool is_stopping_ = false;
  std::atomic<MonoTime::rep> step_began_{0};
  std::thread thread_;
};

}  // namespace tocsin
