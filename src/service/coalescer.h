// Coalescer: a queue of requests of one kind, which two writer threads take in batches. Requests that arrive while one
// batch is being written share the next database call. Owned by Database (node/database.h), one for each kind of
// batched request.
//
// - While few requests wait, one writer works alone. Two writers would commit one after the other on the same disk, and
//   every request would wait for two commits.
// - The second writer helps in two cases: so many requests wait that executing their statements takes longer than a
//   commit; or the first writer seems to wait for another transaction's lock.
// - A writer that finds fewer requests than the last batch held waits for more, because callers that were just answered
//   are about to send their next requests (the idea of PostgreSQL's commit_delay). It waits for a quarter of the last
//   write, 1 ms at most, and not at all if the last batch held one request.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/thread_guard.h"
#include "postgres/pg_client_store.h"
#include "tocsin/clock.h"

namespace tocsin {

// The data members are the queue and the state that its writers share. Thread: push any; the rest owner only (the
// Database's).
template <class Item>
class Coalescer {
 public:
  // Writes a batch. It must answer every item, also while the database is down, or pass the item on to something that
  // answers it (LockedRowRetries). Called on the writer's thread, with the writer's session. Must not throw.
  using Flush = std::function<void(PgClientStore&, std::vector<Item>)>;

  // How much an item adds to a batch. A batch has one item, or weighs `most` at most.
  struct Weight {
    std::function<std::size_t(const Item&)> of;  // empty: items have no weight
    std::size_t most = 0;
  };

  // Starts the threads. `shards`: of the whole installation. `capacity`: how many items may wait. `batch`: the most
  // items per flush.
  Coalescer(const SessionConfig& session, int shards, const Clock& clock, std::size_t capacity, std::size_t batch,
            Flush flush, Weight weight = {})
      : clock_(clock), capacity_(capacity), batch_(batch), flush_(std::move(flush)), weight_(std::move(weight)) {
    for (int i = 0; i < kWriters; ++i)
      threads_.emplace_back([=, this] { run_or_abort("coalescer", [&] { run(session, shards); }); });
  }
  ~Coalescer() { stop(); }

  // Queues an item. False: the queue is full or stopped; the item will not be answered.
  bool push(Item item) {
    MutexLock lock(mutex_);
    if (is_stopping_ || items_.size() >= capacity_) return false;
    items_.push_back(std::move(item));
    wake_one();
    return true;
  }

  // Writes all accepted items, then ends the threads. May be called again.
  void stop() {
    {
      MutexLock lock(mutex_);
      is_stopping_ = true;
    }
    ready_.notify_all();
    gathered_.notify_all();
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

 private:
  static constexpr int kWriters = 2;
  static constexpr std::size_t kForTwoWriters = 64;  // to execute 64 takes as long as to commit on a fast disk
  static constexpr Duration kStuck = std::chrono::milliseconds(20);
  static constexpr Duration kMostGathering = std::chrono::milliseconds(1);

  // A write that has taken this long probably waits for a lock: the second writer takes the next batch.
  bool is_stuck() const TOCSIN_REQUIRES(mutex_) { return clock_.now() - started_ > kStuck; }
  bool may_write() const TOCSIN_REQUIRES(mutex_) {
    return !items_.empty() && !is_gathering_ && (writing_ == 0 || items_.size() >= kForTwoWriters || is_stuck());
  }
  bool should_watch() const TOCSIN_REQUIRES(mutex_) {
    return !items_.empty() && writing_ > 0 && !is_gathering_ && !is_watching_;
  }
  bool is_enough() const TOCSIN_REQUIRES(mutex_) {
    return is_stopping_ || items_.size() >= std::min(last_size_, batch_);
  }
  void wake_one() TOCSIN_REQUIRES(mutex_) {
    if (is_gathering_) {
      if (is_enough()) gathered_.notify_one();
    } else if (may_write() || should_watch()) {
      ready_.notify_one();
    }
  }

  void run(const SessionConfig& config, int shards) {
    Session session(config);
    PgClientStore client_store(session, shards);
    MutexLock lock(mutex_);
    while (true) {
      wait_for_work();
      if (items_.empty()) return;
      if (!is_stopping_) gather();
      if (items_.empty()) continue;
      std::vector<Item> batch = take_batch();
      last_size_ = batch.size();
      started_ = clock_.now();
      ++writing_;
      wake_one();
      lock.unlock();
      const MonoTime started = clock_.now();
      flush_(client_store, std::move(batch));
      const Duration took = clock_.now() - started;
      lock.lock();
      --writing_;
      last_took_ = took;
    }
  }

  // REQUIRES: an item waits.
  std::vector<Item> take_batch() TOCSIN_REQUIRES(mutex_) {
    std::vector<Item> batch;
    std::size_t weight = 0;
    while (!items_.empty() && batch.size() < batch_) {
      if (weight_.of) weight += weight_.of(items_.front());
      if (weight > weight_.most && !batch.empty()) break;
      batch.push_back(std::move(items_.front()));
      items_.pop_front();
    }
    return batch;
  }

  void wait_for_work() TOCSIN_REQUIRES(mutex_) {
    while (!is_stopping_ && !may_write()) {
      if (!should_watch()) {
        ready_.wait(mutex_);
        continue;
      }
      is_watching_ = true;
      ready_.wait_for(mutex_, kStuck);
      is_watching_ = false;
    }
  }

  void gather() TOCSIN_REQUIRES(mutex_) {
    if (is_enough()) return;
    is_gathering_ = true;
    const auto end = std::chrono::steady_clock::now() + std::min(last_took_ / 4, kMostGathering);
    while (!is_enough() && gathered_.wait_until(mutex_, end)) {
    }
    is_gathering_ = false;
  }

  const Clock& clock_;
  const std::size_t capacity_;
  const std::size_t batch_;
  const Flush flush_;
  const Weight weight_;
  Mutex mutex_;
  CondVar ready_, gathered_;
  std::deque<Item> items_ TOCSIN_GUARDED_BY(mutex_);
  std::size_t last_size_ TOCSIN_GUARDED_BY(mutex_) = 0;  // of the batch taken last
  Duration last_took_ TOCSIN_GUARDED_BY(mutex_){0};      // duration of the last write
  MonoTime started_ TOCSIN_GUARDED_BY(mutex_){};         // start of the last write, which may still run
  int writing_ TOCSIN_GUARDED_BY(mutex_) = 0;            // writers that are in flush_
  bool is_gathering_ TOCSIN_GUARDED_BY(mutex_) = false;  // a writer waits for more items
  bool is_watching_ TOCSIN_GUARDED_BY(mutex_) = false;   // a writer waits to see whether the current write is stuck
  bool is_stopping_ TOCSIN_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace tocsin
