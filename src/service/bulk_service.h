// The node's thread for bulk operations: runs requests about them, and their batches, one after the other. It has
// connections of its own, made when they are first needed, so that a node without bulk operations pays nothing but one
// statement each half minute.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "api/backend.h"
#include "base/loop_thread.h"
#include "base/mutex.h"
#include "bulk/bulk_runner.h"
#include "postgres/session.h"

namespace tocsin {

struct BulkSession {
  DatabaseId database_id = 0;
  SessionConfig session;
};

// Thread: post any; the rest owner only.
class BulkService final : private Stage {
 public:
  using Work = std::function<void(BulkAccess&)>;
  // `sessions`: of every database of the node, the control database first.
  BulkService(NodeId node, const std::vector<BulkSession>& sessions, int shards, const Clock& clock,
              BulkRunner::OnDueSoon on_due_soon, LoopThread::OnStep on_step);
  ~BulkService() override { stop(); }

  void start() { thread_.start(); }
  // Stops after the current batch or request; another node continues the bulk operation. Requests that still wait are
  // discarded, so their calls are answered 500.
  void stop();
  bool post(Work work);  // false: 100 requests wait already, or it is stopped

 private:
  const char* name() const override { return runner_.name(); }
  MonoTime step(MonoTime now) override;

  const NodeId node_;
  std::vector<std::unique_ptr<BulkStore>> stores_;
  std::vector<BulkDatabase> databases_;
  BulkRunner runner_;
  Mutex mutex_;
  std::deque<Work> requests_ TOCSIN_GUARDED_BY(mutex_);
  bool is_stopping_ TOCSIN_GUARDED_BY(mutex_) = false;
  LoopThread thread_;
};

}  // namespace tocsin
