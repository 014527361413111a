// Requests that arrive together share one database call: while one batch is being written, the next gathers.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "node/thread_guard.h"
#include "postgres/pg_job_desk.h"

namespace tocsin {

// Thread: push any; the rest owner only.
template <class Item>
class Coalescer {
 public:
  // Writes a batch and answers every item of it.
  using Flush = std::function<void(PgJobDesk&, std::vector<Item>)>;

  Coalescer(const SessionConfig& session, int shards, int threads, std::size_t capacity, std::size_t batch, Flush flush)
      : capacity_(capacity), batch_(batch), flush_(std::move(flush)) {
    for (int i = 0; i < threads; ++i)
      threads_.emplace_back([=, this] { or_abort("coalescer", [&] { run(session, shards); }); });
  }
  ~Coalescer() { stop(); }

  // False: full or stopped; the item will not be answered.
  bool push(Item item) {
    {
      std::lock_guard lock(mutex_);
      if (is_stopping_ || items_.size() >= capacity_) return false;
      items_.push_back(std::move(item));
    }
    ready_.notify_one();
    return true;
  }

  // Writes what has been accepted, then ends the threads.
  void stop() {
    {
      std::lock_guard lock(mutex_);
      is_stopping_ = true;
    }
    ready_.notify_all();
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

 private:
  void run(const SessionConfig& config, int shards) {
    Session session(config);
    PgJobDesk desk(session, shards);
    std::unique_lock lock(mutex_);
    while (true) {
      ready_.wait(lock, [this] { return is_stopping_ || !items_.empty(); });
      if (items_.empty()) return;
      std::vector<Item> batch;
      while (!items_.empty() && batch.size() < batch_) {
        batch.push_back(std::move(items_.front()));
        items_.pop_front();
      }
      lock.unlock();
      flush_(desk, std::move(batch));
      lock.lock();
    }
  }

  const std::size_t capacity_;
  const std::size_t batch_;
  const Flush flush_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Item> items_;
  bool is_stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tocsin
