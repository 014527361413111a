// FakeBulkStore: a BulkStore (bulk/bulk_store.h: stores and runs bulk operations, one change of all jobs that match a
// filter) in memory, over the jobs of a FakeDatabase. Used by FakeBackend and by the tests of BulkRunner.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "bulk/bulk_store.h"
#include "support/fake_database.h"

namespace tocsin {

// Thread: owner only.
class FakeBulkStore final : public BulkStore {
 public:
  explicit FakeBulkStore(FakeDatabase& database) : database_(database) {}

  // Settings of the test.
  WallTime now{};                  // the store's clock
  std::optional<ErrorCode> fails;  // the Error of every call
  bool is_frozen = false;          // a shard is write-frozen
  int moves = 0;                   // freezes and moves of shards until now
  bool moves_while_counting = false;

  Result<std::optional<std::string>> placement() override;
  Result<std::optional<Bulk>> start(const BulkRequest& request, std::int64_t matched, NodeId node, Duration lease,
                                    const std::string& placement) override;
  Result<std::optional<Bulk>> find(std::int64_t bulk_id) override;
  Result<std::vector<Bulk>> list(int limit) override;
  Result<std::optional<Bulk>> request_stop(std::int64_t bulk_id) override;
  Result<std::optional<Bulk>> take_over(NodeId node, Duration lease) override;
  Result<std::optional<Bulk>> take_over(std::int64_t bulk_id, NodeId node, Duration lease) override;
  Result<std::optional<Bulk>> keep(std::int64_t bulk_id, NodeId node, std::int64_t changed, Duration lease) override;
  Result<bool> finish(const Bulk& bulk, NodeId node) override;
  Result<std::int64_t> count(const BulkRequest& request) override;
  Result<BulkBatch> progress(std::int64_t bulk_id) override;
  Result<std::int64_t> close(std::int64_t bulk_id) override;
  Result<BulkBatch> run_batch(const Bulk& bulk, int limit) override;

 private:
  struct Stored {
    Bulk bulk;
    NodeId node = 0;
    WallTime lease_until{};
  };
  // What run_batch() has done of one bulk operation.
  struct Progress {
    JobId last = 0;  // the job visited last: jobs are visited by id
    BulkBatch batch;
    std::vector<JobId> locked;  // skipped because they were locked; visited again at the end
  };
  // No node runs it: its lease has ended.
  bool is_idle(const Stored& stored) const {
    return stored.bulk.state == BulkState::running && stored.lease_until < now;
  }
  Error failure() const { return {*fails, "as the test wants", ""}; }
  std::vector<Job> matching(const BulkRequest& request) const;  // by id, ascending
  std::vector<Job> changed_by(const Bulk& bulk) const;          // those that were there when it began
  bool change(const Bulk& bulk, JobId job);

  FakeDatabase& database_;
  std::map<std::int64_t, Stored> bulks_;
  std::map<std::int64_t, Progress> progress_;
};

}  // namespace tocsin
