// BackgroundWork: work that runs on a thread of its own while the bench measures something. Thread: owner only.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <thread>

#include "cli/pause.h"

namespace tocsin::bench {

// Calls `work` again and again, `pause` apart, until stop().
class BackgroundWork {
 public:
  BackgroundWork(std::chrono::milliseconds pause, std::function<void()> work)
      : thread_([pause, work = std::move(work), this](const std::stop_token& stop) {
          try {
            for (; !stop.stop_requested(); pause_for(pause)) work();
          } catch (...) {
            failure_ = std::current_exception();
          }
        }) {}
  // Ends the thread. Rethrows the exception that `work` threw; it ended the work.
  void stop() {
    thread_.request_stop();
    thread_.join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::exception_ptr failure_;
  std::jthread thread_;
};

}  // namespace tocsin::bench
