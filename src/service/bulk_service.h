// BulkService: the thread of a node for bulk operations (one action on every job that matches a filter). It runs the
// REST requests about bulk operations and the batches of the node's current one in turns (BulkStage). Owned by the node
// (node/node_impl.h), one per node.
//
// Each connection is made when it is first needed. A node without bulk operations has one, to the control database, and
// executes one statement on it every 5 seconds.
#pragma once

#include <memory>
#include <vector>

#include "base/loop_thread.h"
#include "postgres/session.h"
#include "service/bulk_stage.h"

namespace tocsin {

// How the thread connects to one database.
struct BulkSessionConfig {
  DatabaseId database_id = 0;
  SessionConfig session;
};

// Thread: post any; the rest owner only (the thread that starts and stops the node).
class BulkService final {
 public:
  // `sessions`: for every database of the node, the control database first. `shards`: of the whole installation.
  // `hooks`: of the BulkRunner. `on_step`: called with the duration of each request or batch. All are called on the
  // service's thread.
  BulkService(NodeId node, const std::vector<BulkSessionConfig>& sessions, int shards, const Clock& clock,
              BulkRunner::Hooks hooks, LoopThread::OnStep on_step);
  ~BulkService() { stop(); }

  void start() { thread_.start(); }
  // Ends the thread after the current batch or request. A bulk operation that this node was running is continued by
  // another node when its lease has expired. Requests that still wait are destroyed without being run; the REST calls
  // that they hold are answered 500.
  void stop();
  // Queues a request, which runs on the service's thread. False: BulkStage::kMostRequests wait already, or the service
  // is stopped; `work` is not called.
  bool post(BulkStage::Work work);

 private:
  const std::vector<std::unique_ptr<BulkStore>> stores_;
  BulkStage stage_;
  LoopThread thread_;
};

}  // namespace tocsin
