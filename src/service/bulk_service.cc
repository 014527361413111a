#include "service/bulk_service.h"

#include <utility>

#include "postgres/pg_bulk_store.h"

namespace tocsin {
namespace {

constexpr std::size_t kMostBulkRequests = 100;

std::vector<std::unique_ptr<BulkStore>> stores_of(const std::vector<BulkSessionConfig>& sessions, int shards) {
  std::vector<std::unique_ptr<BulkStore>> stores;
  for (const BulkSessionConfig& each : sessions) {
    SessionConfig config = each.session;
    config.has_pinned_plans = false;
    stores.push_back(std::make_unique<PgBulkStore>(config, shards));
  }
  return stores;
}

std::vector<BulkDatabase> databases_of(const std::vector<BulkSessionConfig>& sessions,
                                       const std::vector<std::unique_ptr<BulkStore>>& stores) {
  std::vector<BulkDatabase> databases;
  for (std::size_t i = 0; i < sessions.size(); ++i) databases.push_back({sessions[i].database_id, stores[i].get()});
  return databases;
}

}  // namespace

BulkService::BulkService(NodeId node, const std::vector<BulkSessionConfig>& sessions, int shards, const Clock& clock,
                         BulkRunner::OnDueSoon on_due_soon, LoopThread::OnStep on_step)
    : node_(node),
      stores_(stores_of(sessions, shards)),
      databases_(databases_of(sessions, stores_)),
      runner_(node, databases_, std::move(on_due_soon)),
      thread_(*this, clock, std::move(on_step)) {}

void BulkService::stop() {
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  thread_.stop();
  std::deque<Work> unanswered;
  {
    MutexLock lock(mutex_);
    unanswered.swap(requests_);
  }
}

bool BulkService::post(Work work) {
  {
    MutexLock lock(mutex_);
    if (is_stopping_ || requests_.size() >= kMostBulkRequests) return false;
    requests_.push_back(std::move(work));
  }
  thread_.wake();
  return true;
}

MonoTime BulkService::step(MonoTime now) {
  Work work;
  {
    MutexLock lock(mutex_);
    if (!requests_.empty()) {
      work = std::move(requests_.front());
      requests_.pop_front();
    }
  }
  if (!work) return runner_.step(now);
  BulkAccess access{node_, databases_, runner_};
  work(access);
  return now;
}

}  // namespace tocsin
