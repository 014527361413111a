#include "base/worker_pool.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "base/assert.h"

namespace tocsin {

struct WorkerPool::State {
  std::mutex mutex;
  std::condition_variable has_work;
  std::condition_variable is_idle;
  std::deque<std::function<void()>> tasks;
  std::size_t capacity = 0;
  int running = 0;
  bool is_stopping = false;
};

WorkerPool::WorkerPool(int threads, std::size_t capacity) : state_(std::make_shared<State>()) {
  TOCSIN_ASSERT(threads > 0);
  state_->capacity = capacity;
  for (int i = 0; i < threads; ++i) threads_.emplace_back([state = state_] { work(state); });
}

WorkerPool::~WorkerPool() { stop(Duration{0}); }

bool WorkerPool::try_run(std::function<void()> task) {
  {
    std::lock_guard lock(state_->mutex);
    if (state_->is_stopping || state_->tasks.size() >= state_->capacity) return false;
    state_->tasks.push_back(std::move(task));
  }
  state_->has_work.notify_one();
  return true;
}

bool WorkerPool::stop(Duration grace) {
  std::deque<std::function<void()>> discarded;  // destroyed after the lock: a task's destructor is foreign code
  bool is_stuck;
  {
    std::unique_lock lock(state_->mutex);
    state_->is_stopping = true;
    state_->has_work.notify_all();
    state_->is_idle.wait_for(lock, grace, [&] { return state_->running == 0 && state_->tasks.empty(); });
    is_stuck = state_->running > 0;
    discarded.swap(state_->tasks);
  }
  for (std::thread& thread : threads_) is_stuck ? thread.detach() : thread.join();
  threads_.clear();
  return !is_stuck && discarded.empty();
}

void WorkerPool::work(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  while (true) {
    state->has_work.wait(lock, [&] { return state->is_stopping || !state->tasks.empty(); });
    if (state->tasks.empty()) return;
    std::function<void()> task = std::move(state->tasks.front());
    state->tasks.pop_front();
    ++state->running;
    lock.unlock();
    task();
    task = nullptr;  // what it owns goes before the thread counts as idle
    lock.lock();
    if (--state->running == 0 && state->tasks.empty()) state->is_idle.notify_all();
  }
}

}  // namespace tocsin
