#include "base/worker_pool.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/thread_guard.h"

namespace tocsin {

struct WorkerPool::State {
  State(std::size_t regular_threads, std::size_t spare_threads, std::size_t lane_capacity)
      : regular(regular_threads), spare(spare_threads), capacity(lane_capacity) {}

  struct Lane {
    std::deque<std::function<void()>> tasks;
    std::size_t running = 0;
  };

  // The next lane that may have a thread: the first in turn, but beyond the regular threads only one of which nothing
  // runs. turns.end(): none.
  std::deque<std::int64_t>::iterator next_lane() {
    return std::find_if(turns.begin(), turns.end(),
                        [this](std::int64_t id) { return running < regular || lanes[id].running == 0; });
  }

  const std::size_t regular, spare, capacity;
  std::mutex mutex;
  std::condition_variable has_work;
  std::condition_variable is_idle;
  std::map<std::int64_t, Lane> lanes;  // those with tasks, waiting or running
  std::deque<std::int64_t> turns;      // lanes with waiting tasks, whose turn is next first
  std::vector<std::thread> threads;
  std::size_t idle = 0;     // threads that wait for work
  std::size_t running = 0;  // tasks
  bool is_stopping = false;
};

WorkerPool::WorkerPool(int threads, std::size_t capacity, int spare_threads)
    : state_(std::make_shared<State>(threads, spare_threads, capacity)) {
  TOCSIN_ASSERT(threads > 0 && spare_threads >= 0);
  std::lock_guard lock(state_->mutex);
  for (int i = 0; i < threads; ++i) start_thread(state_);
}

WorkerPool::~WorkerPool() { stop(Duration{0}); }

std::size_t WorkerPool::threads() const { return state_->regular; }

void WorkerPool::start_thread(const std::shared_ptr<State>& state) {
  state->threads.emplace_back([state] { or_abort("worker", [&] { work(state); }); });
}

void WorkerPool::call_help(const std::shared_ptr<State>& state) {
  if (state->next_lane() == state->turns.end()) return;
  if (state->idle > 0) {
    state->has_work.notify_one();
  } else if (state->running >= state->regular && state->threads.size() < state->regular + state->spare) {
    try {
      start_thread(state);
    } catch (const std::system_error&) {  // the machine has no more threads: it waits for one of those there are
    }
  }
}

bool WorkerPool::try_run(std::int64_t lane, std::function<void()> task) {
  std::lock_guard lock(state_->mutex);
  State& state = *state_;
  if (state.is_stopping) return false;
  State::Lane& mine = state.lanes[lane];
  if (mine.tasks.size() >= state.capacity) return false;
  if (mine.tasks.empty()) state.turns.push_back(lane);
  mine.tasks.push_back(std::move(task));
  call_help(state_);
  return true;
}

bool WorkerPool::stop(Duration grace) {
  std::map<std::int64_t, State::Lane> discarded;  // destroyed after the lock: a task's destructor is foreign code
  std::vector<std::thread> threads;
  bool is_stuck, is_clean;
  {
    std::unique_lock lock(state_->mutex);
    State& state = *state_;
    state.is_stopping = true;
    state.has_work.notify_all();
    is_clean = state.is_idle.wait_for(lock, grace, [&] { return state.running == 0 && state.turns.empty(); });
    is_stuck = state.running > 0;
    discarded.swap(state.lanes);
    state.turns.clear();
    threads.swap(state.threads);
    state.has_work.notify_all();  // who waited for a turn
  }
  for (std::thread& thread : threads) is_stuck ? thread.detach() : thread.join();
  return is_clean;
}

void WorkerPool::work(const std::shared_ptr<State>& shared) {
  State& state = *shared;
  std::unique_lock lock(state.mutex);
  while (true) {
    auto turn = state.next_lane();
    while (turn == state.turns.end()) {
      if (state.is_stopping && state.turns.empty()) return;
      ++state.idle;
      state.has_work.wait(lock);
      --state.idle;
      turn = state.next_lane();
    }
    const std::int64_t id = *turn;
    state.turns.erase(turn);
    State::Lane& lane = state.lanes[id];
    std::function<void()> task = std::move(lane.tasks.front());
    lane.tasks.pop_front();
    if (!lane.tasks.empty()) state.turns.push_back(id);
    ++lane.running;
    ++state.running;
    call_help(shared);  // one push wakes one thread, and this one may have taken another lane's task
    lock.unlock();
    task();
    task = nullptr;  // what it owns goes before the thread counts as idle
    lock.lock();
    --state.running;
    if (const auto done = state.lanes.find(id); done != state.lanes.end()) {  // gone: stopped meanwhile
      if (--done->second.running == 0 && done->second.tasks.empty()) state.lanes.erase(done);
    }
    if (state.turns.empty() && state.running == 0) state.is_idle.notify_all();
  }
}

}  // namespace tocsin
