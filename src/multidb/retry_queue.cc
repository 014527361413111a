#include "multidb/retry_queue.h"

#include <utility>

#include "base/thread_guard.h"

namespace tocsin {
namespace {

constexpr std::size_t kMost = 20'000;
constexpr auto kPause = std::chrono::milliseconds(20);

}  // namespace

RetryQueue::RetryQueue() : thread_([this] { or_abort("second tries", [this] { run(); }); }) {}

bool RetryQueue::push(std::function<void()> attempt) {
  {
    std::lock_guard lock(mutex_);
    if (is_stopping_ || waiting_.size() >= kMost) return false;
    waiting_.push_back(std::move(attempt));
  }
  woken_.notify_one();
  return true;
}

void RetryQueue::stop() {
  {
    std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  woken_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void RetryQueue::run() {
  for (std::unique_lock lock(mutex_);;) {
    woken_.wait(lock, [this] { return is_stopping_ || !waiting_.empty(); });
    woken_.wait_for(lock, kPause, [this] { return is_stopping_; });
    auto now = std::exchange(waiting_, {});
    const bool is_last = is_stopping_;
    lock.unlock();
    for (const auto& attempt : now) attempt();
    if (is_last) return;
    lock.lock();
  }
}

}  // namespace tocsin
