#include "base/worker_thread.h"

#include <utility>

#include "base/thread_guard.h"

namespace tocsin {

void WorkerThread::start(std::string name, std::function<void()> work) {
  thread_ = std::thread([name = std::move(name), work = std::move(work)] { run_or_abort(name.c_str(), work); });
}

void WorkerThread::wake() {
  {
    MutexLock lock(mutex_);
    if (is_woken_) return;
    is_woken_ = true;
  }
  changed_.notify_all();
}

void WorkerThread::request_stop() {
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
}

void WorkerThread::stop() {
  request_stop();
  if (thread_.joinable()) thread_.join();
}

bool WorkerThread::is_stopping() const {
  MutexLock lock(mutex_);
  return is_stopping_;
}

bool WorkerThread::wait() {
  MutexLock lock(mutex_);
  while (!is_woken_ && !is_stopping_) changed_.wait(mutex_);
  is_woken_ = false;
  return !is_stopping_;
}

bool WorkerThread::wait_for(std::chrono::microseconds length) {
  return wait_until(std::chrono::steady_clock::now() + length);
}

bool WorkerThread::wait_until(std::chrono::steady_clock::time_point end) {
  MutexLock lock(mutex_);
  while (!is_woken_ && !is_stopping_ && changed_.wait_until(mutex_, end)) {
  }
  is_woken_ = false;
  return !is_stopping_;
}

bool WorkerThread::pause(std::chrono::microseconds length) {
  const auto end = std::chrono::steady_clock::now() + length;
  MutexLock lock(mutex_);
  while (!is_stopping_ && changed_.wait_until(mutex_, end)) {
  }
  return !is_stopping_;
}

bool WorkerThread::forget_wakes() {
  MutexLock lock(mutex_);
  is_woken_ = false;
  return !is_stopping_;
}

}  // namespace tocsin
