#include "service/request_pool.h"

#include <algorithm>

#include "base/thread_guard.h"
#include "postgres/pg_client_store.h"
#include "postgres/pg_report_store.h"
#include "postgres/pg_type_store.h"

namespace tocsin {

RequestPool::RequestPool(DatabaseId database_id, const SessionConfig& session, int shards, int threads,
                         std::size_t capacity, const Clock& clock, std::function<void(Duration)> waited)
    : database_id_(database_id), capacity_(capacity), clock_(clock), waited_(std::move(waited)) {
  for (int i = 0; i < threads; ++i)
    threads_.emplace_back([=, this] { run_or_abort("database work", [&] { run(session, shards); }); });
}

bool RequestPool::post(Work work) {
  {
    MutexLock lock(mutex_);
    if (is_stopping_ || queue_.size() >= capacity_) return false;
    queue_.push_back({std::move(work), clock_.now()});
  }
  ready_.notify_one();
  return true;
}

void RequestPool::stop() {
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  ready_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void RequestPool::run(SessionConfig config, int shards) {
  Session pinned(config);
  config.has_pinned_plans = false;  // for lists and counts, whose best plan depends on the tables' sizes
  config.is_planned_each_time = true;
  config.statement_timeout_ms = std::min(config.statement_timeout_ms, 10'000);
  Session free_plans(config);
  PgClientStore client_store(pinned, shards);
  PgReportStore reports(free_plans, shards);
  PgTypeStore types(free_plans);
  Stores stores{database_id_, client_store, reports, types, Duration(0)};
  // A new connection loads the catalog entries of every table once, which takes longer than a batch of jobs. When that
  // fails, the first request does it and has the error.
  static_cast<void>(client_store.warm_up());
  MutexLock lock(mutex_);
  while (true) {
    while (!is_stopping_ && queue_.empty()) ready_.wait(mutex_);
    if (queue_.empty()) return;
    Work work = std::move(queue_.front().work);
    const MonoTime posted = queue_.front().at;
    queue_.pop_front();
    lock.unlock();
    stores.queued = clock_.now() - posted;
    waited_(stores.queued);
    work(stores);
    work = nullptr;
    lock.lock();
  }
}

}  // namespace tocsin
