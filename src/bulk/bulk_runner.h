// BulkRunner: the stage that runs bulk operations ("bulks": one action on every job that matches a filter) on this
// node. It runs one bulk at a time, one database after the other, in batches, at most at the rate that the bulk's
// caller asked for. It changes no more jobs than matched when the bulk began. After an error it repeats the call a
// second later; the bulk fails if a database refuses its values.
//
// The node that accepted a bulk runs it under a lease, kept in the control database and extended each second. If that
// node dies, another one takes the bulk over when the lease has expired, 20 s later at the latest. A node that has lost
// the lease stops working on the bulk at its next extension. A batch that both nodes run meanwhile does no harm: each
// batch locks the stored progress, so one waits for the other and continues after it. Thread: owner only (that of
// BulkService).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/stage.h"
#include "bulk/bulk_store.h"

namespace tocsin {

// A step makes several store calls; the simulator runs only stages that make one, so not this one.
class BulkRunner final : public Stage {
 public:
  static constexpr Duration kLease = std::chrono::seconds(15);
  static constexpr Duration kLookInterval = std::chrono::seconds(5);  // between searches for a bulk to take over
  static constexpr int kBatch = 500;  // jobs per transaction, at most: some 20 ms of row locks

  // Called in step() with each changed job that is due within the lookahead (5 s), to tell the node that scans its
  // shard: its scans may have passed the job's new time already. Must not block.
  using OnDueSoon = std::function<void(const Candidate&)>;
  // `databases`: all of this node's, the control database first. REQUIRES: their stores outlive the runner.
  BulkRunner(NodeId node, std::vector<BulkDatabase> databases, OnDueSoon on_due_soon);

  const char* name() const override { return "bulk"; }
  MonoTime step(MonoTime now) override;

  // Begins to run a bulk that this node has accepted. REQUIRES: it has the bulk's lease. False: another bulk runs here;
  // a node without one takes this bulk over when its lease has expired.
  bool take(Bulk bulk);
  bool is_busy() const { return bulk_.has_value(); }

 private:
  // Each returns when to call step() again.
  MonoTime look_for_bulk(MonoTime now);  // of a node that has ended
  MonoTime run_batch(MonoTime now);
  MonoTime retry_later(MonoTime now) const;
  // Each returns false if a database did not answer; extend_lease() also when the lease is lost: there is no bulk then.
  bool load_progress();
  bool extend_lease(MonoTime now);
  bool finish(BulkState state, std::string error);
  int batch_limit() const;
  std::int64_t changed() const;  // in all databases

  const NodeId node_;
  const std::vector<BulkDatabase> databases_;
  const OnDueSoon on_due_soon_;
  std::optional<Bulk> bulk_;
  std::size_t database_ = 0;                     // index of the database whose jobs are being changed; or past the end
  std::map<DatabaseId, std::int64_t> progress_;  // jobs changed, by database
  bool is_loaded_ = false;                       // progress_ includes what other nodes have changed
  MonoTime next_batch_{};                        // earliest start by the rate
  std::optional<MonoTime> extended_at_;          // when the lease was extended last
  std::optional<MonoTime> next_look_;            // nullopt: at once
};

// Stops the bulk `bulk_id`: the node that runs it ends it within about a second; if no node does, because it waits for
// its turn or its node has died, it has ended as stopped on return, with the numbers of all databases. `node`: the one
// that calls. Returns the bulk, which may have ended before; nullopt: there is none. A bulk that no node runs is
// returned as running if a database does not answer; it ends as stopped when a node takes it over. REQUIRES: the stores
// belong to the calling thread.
Result<std::optional<Bulk>> stop_bulk(std::span<const BulkDatabase> databases, NodeId node, std::int64_t bulk_id);

}  // namespace tocsin
