#include "service/bulk_service.h"

#include <utility>

#include "postgres/pg_bulk_store.h"

namespace tocsin {
namespace {

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
                         BulkRunner::Hooks hooks, LoopThread::OnStep on_step)
    : stores_(stores_of(sessions, shards)),
      stage_(node, databases_of(sessions, stores_), std::move(hooks)),
      thread_(stage_, clock, std::move(on_step)) {}

void BulkService::stop() {
  stage_.close();
  thread_.stop();
  stage_.drop_requests();
}

bool BulkService::post(BulkStage::Work work) {
  if (!stage_.post(std::move(work))) return false;
  thread_.wake();
  return true;
}

}  // namespace tocsin
