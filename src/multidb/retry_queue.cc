#include "multidb/retry_queue.h"

#include <utility>

namespace tocsin {
namespace {

constexpr std::size_t kMost = 20'000;
constexpr auto kPause = std::chrono::milliseconds(20);

}  // namespace

RetryQueue::RetryQueue() {
  worker_.start("moved retries", [this] { run(); });
}

bool RetryQueue::push(std::function<void()> attempt) {
  {
    MutexLock lock(mutex_);
    if (worker_.is_stopping() || waiting_.size() >= kMost) return false;
    waiting_.push_back(std::move(attempt));
  }
  worker_.wake();
  return true;
}

std::vector<std::function<void()>> RetryQueue::take() {
  MutexLock lock(mutex_);
  return std::exchange(waiting_, {});
}

void RetryQueue::run() {
  for (bool is_last = false; !is_last;) {
    is_last = !worker_.wait() || !worker_.pause(kPause);
    for (const auto& attempt : take()) attempt();
  }
}

}  // namespace tocsin
