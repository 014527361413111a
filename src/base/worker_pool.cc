#include "base/worker_pool.h"

#include <algorithm>
#include <deque>
#include <map>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/mutex.h"
#include "base/thread_guard.h"

namespace tocsin {

struct WorkerPool::State : std::enable_shared_from_this<State> {
  State(std::size_t regular_threads, std::size_t spare_threads, std::size_t lane_capacity)
      : regular(regular_threads), spare(spare_threads), capacity(lane_capacity) {}

  struct Lane {
    std::deque<std::function<void()>> tasks;
    std::size_t running = 0;
  };

  // The lane that gets the next thread: the first in turn; when all regular threads are busy, the first without a
  // running task. turns.end(): none.
  std::deque<std::int64_t>::iterator next_lane() TOCSIN_REQUIRES(mutex) {
    auto turn = turns.begin();
    while (turn != turns.end() && running >= regular && lanes[*turn].running > 0) ++turn;
    return turn;
  }

  void start_thread() TOCSIN_REQUIRES(mutex);
  // Wakes a thread for a waiting task, or starts a spare one.
  void call_help() TOCSIN_REQUIRES(mutex);
  void work();

  const std::size_t regular, spare, capacity;
  Mutex mutex;
  CondVar has_work;
  CondVar is_idle;
  std::map<std::int64_t, Lane> lanes TOCSIN_GUARDED_BY(mutex);  // those with tasks, waiting or running
  std::deque<std::int64_t> turns TOCSIN_GUARDED_BY(mutex);      // lanes with waiting tasks, whose turn is next first
  std::vector<std::thread> threads TOCSIN_GUARDED_BY(mutex);
  std::size_t idle TOCSIN_GUARDED_BY(mutex) = 0;     // threads that wait for work
  std::size_t running TOCSIN_GUARDED_BY(mutex) = 0;  // tasks
  bool is_stopping TOCSIN_GUARDED_BY(mutex) = false;
};

WorkerPool::WorkerPool(int threads, std::size_t capacity, int spare_threads)
    : state_(std::make_shared<State>(threads, spare_threads, capacity)) {
  TOCSIN_ASSERT(threads > 0 && spare_threads >= 0);
  State& state = *state_;
  MutexLock lock(state.mutex);
  for (int i = 0; i < threads; ++i) state.start_thread();
}

WorkerPool::~WorkerPool() { stop(Duration{0}); }

std::size_t WorkerPool::threads() const { return state_->regular; }

void WorkerPool::State::start_thread() {
  threads.emplace_back([state = shared_from_this()] { run_or_abort("worker", [&] { state->work(); }); });
}

void WorkerPool::State::call_help() {
  if (next_lane() == turns.end()) return;
  if (idle > 0) {
    has_work.notify_one();
  } else if (running >= regular && threads.size() < regular + spare) {
    try {
      start_thread();
    } catch (const std::system_error&) {  // the machine has no more threads: it waits for one of those there are
    }
  }
}

bool WorkerPool::try_run(std::int64_t lane, std::function<void()> task) {
  State& state = *state_;
  MutexLock lock(state.mutex);
  if (state.is_stopping) return false;
  State::Lane& mine = state.lanes[lane];
  if (mine.tasks.size() >= state.capacity) return false;
  if (mine.tasks.empty()) state.turns.push_back(lane);
  mine.tasks.push_back(std::move(task));
  state.call_help();
  return true;
}

bool WorkerPool::stop(Duration grace) {
  std::map<std::int64_t, State::Lane> discarded;  // destroyed after the lock: a task's destructor is foreign code
  std::vector<std::thread> threads;
  bool is_stuck, is_clean;
  {
    State& state = *state_;
    MutexLock lock(state.mutex);
    state.is_stopping = true;
    state.has_work.notify_all();
    const auto end = std::chrono::steady_clock::now() + grace;
    while ((state.running > 0 || !state.turns.empty()) && state.is_idle.wait_until(state.mutex, end)) {
    }
    is_clean = state.running == 0 && state.turns.empty();
    is_stuck = state.running > 0;
    discarded.swap(state.lanes);
    state.turns.clear();
    threads.swap(state.threads);
    state.has_work.notify_all();  // threads that wait for a lane's turn
  }
  for (std::thread& thread : threads) is_stuck ? thread.detach() : thread.join();
  return is_clean;
}

void WorkerPool::State::work() {
  MutexLock lock(mutex);
  while (true) {
    auto turn = next_lane();
    while (turn == turns.end()) {
      if (is_stopping && turns.empty()) return;
      ++idle;
      has_work.wait(mutex);
      --idle;
      turn = next_lane();
    }
    const std::int64_t id = *turn;
    turns.erase(turn);
    State::Lane& lane = lanes[id];
    std::function<void()> task = std::move(lane.tasks.front());
    lane.tasks.pop_front();
    if (!lane.tasks.empty()) turns.push_back(id);
    ++lane.running;
    ++running;
    call_help();  // one push wakes one thread, and this one may have taken another lane's task
    lock.unlock();
    task();
    task = nullptr;  // destroyed before the thread counts as idle
    lock.lock();
    --running;
    if (const auto done = lanes.find(id); done != lanes.end()) {  // gone: stopped meanwhile
      if (--done->second.running == 0 && done->second.tasks.empty()) lanes.erase(done);
    }
    if (turns.empty() && running == 0) is_idle.notify_all();
  }
}

}  // namespace tocsin
