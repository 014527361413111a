// BulkStage: takes turns between the requests about bulk operations (one action on every job that matches a filter) and
// the batches of the operation that this node runs (BulkRunner, bulk/bulk_runner.h). Owned by BulkService
// (service/bulk_service.h), whose thread steps it.
//
// After each request the runner has a turn if it is due, and after each turn of the runner one request. So callers that
// always have a next request do not stop an operation, whose lease would end and whose stop would not be noticed; and a
// request waits for one batch at most, besides the requests before it.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "api/backend.h"
#include "base/mutex.h"
#include "base/stage.h"
#include "bulk/bulk_runner.h"

namespace tocsin {

// Thread: post and close any; the rest owner only (BulkService's).
class BulkStage final : public Stage {
 public:
  static constexpr std::size_t kMostRequests = 100;

  // A request. It may block for database calls.
  using Work = std::function<void(BulkAccess&)>;
  // As the constructor of BulkRunner.
  BulkStage(NodeId node, std::vector<BulkDatabase> databases, BulkRunner::Hooks hooks);

  const char* name() const override { return runner_.name(); }
  MonoTime step(MonoTime now) override;

  // Queues a request. The caller then wakes the thread. Returns false, and does not call `work`, if kMostRequests wait
  // already or the stage is closed.
  bool post(Work work);
  // Accepts no more requests.
  void close();
  // Destroys the requests that wait, without running them. REQUIRES: closed, and step() is not called any more.
  void drop_requests();

 private:
  Work next_request();  // empty: none waits

  const NodeId node_;
  const std::vector<BulkDatabase> databases_;
  BulkRunner runner_;
  MonoTime runner_due_{};         // when the runner wants its next turn
  bool is_runners_turn_ = false;  // the last turn was a request's
  Mutex mutex_;
  std::deque<Work> requests_ TOCSIN_GUARDED_BY(mutex_);
  bool is_closed_ TOCSIN_GUARDED_BY(mutex_) = false;
};

}  // namespace tocsin
