// BulkService: the thread of a node for bulk operations (one action on every job that matches a filter). It runs the
// REST requests about bulk operations. While no request waits, it runs the next batch of the node's current bulk
// operation (BulkRunner, bulk/bulk_runner.h). Owned by the node (node/node_impl.h), one per node.
//
// Each connection is made when it is first needed. A node without bulk operations has one, to the control database, and
// executes one statement on it every 5 seconds.
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

// How the thread connects to one database.
struct BulkSessionConfig {
  DatabaseId database_id = 0;
  SessionConfig session;
};

// Thread: post any; the rest owner only (the thread that starts and stops the node).
class BulkService final : private Stage {
 public:
  // A request, run on the service's thread; it may block for database calls. BulkAccess has the stores of all databases
  // and the runner.
  using Work = std::function<void(BulkAccess&)>;
  // `sessions`: for every database of the node, the control database first. `shards`: of the whole installation.
  // `on_due_soon`: called with each changed job that is due within the lookahead (5 s), see BulkRunner. `on_step`:
  // called with the duration of each request or batch. Both are called on the service's thread.
  BulkService(NodeId node, const std::vector<BulkSessionConfig>& sessions, int shards, const Clock& clock,
              BulkRunner::OnDueSoon on_due_soon, LoopThread::OnStep on_step);
  ~BulkService() override { stop(); }

  void start() { thread_.start(); }
  // Ends the thread after the current batch or request. A bulk operation that this node was running is continued by
  // another node when its lease has expired. Requests that still wait are destroyed without being run; the REST calls
  // that they hold are answered 500.
  void stop();
  // Queues a request. False: 100 requests wait already, or the service is stopped; `work` is not called.
  bool post(Work work);

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
