// BulkRunner: the stage that runs bulk operations ("bulks": one action on every job that matches a filter) on this
// node. Owned by BulkStage (service/bulk_stage.h). It runs one bulk at a time, one database after the other, in
// batches, and not faster than the rate that the caller gave. After an Error it repeats the call a second later; Error
// invalid (a database refuses the values) makes the bulk fail. It reports these Errors, and why a database refuses to
// change a job.
//
// The node that accepted a bulk runs it under a lease, which is kept in the control database and extended each second.
// If that node dies, another one takes the bulk over when the lease has expired, after 20 s at the latest. A node that
// has lost the lease stops at its next extension. A batch that both nodes run meanwhile does no harm: each batch locks
// the stored progress, so one waits for the other and continues after it. Thread: owner only (BulkService's).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/stage.h"
#include "bulk/bulk_store.h"

namespace tocsin {

// A step makes several store calls. The simulator runs only stages that make one, so it does not run this one.
class BulkRunner final : public Stage {
 public:
  static constexpr Duration kLease = std::chrono::seconds(15);
  static constexpr Duration kLookInterval = std::chrono::seconds(5);  // between searches for a bulk to take over
  static constexpr int kBatch = 500;  // jobs per transaction, at most: some 20 ms of row locks

  // Called in step() with each changed job that is due within the lookahead (5 s: how far ahead scans read). It tells
  // the node that scans the job's shard, whose scans may have passed the new time already. Must not block.
  using OnDueSoon = std::function<void(const Candidate&)>;
  // Called in step() with each Error of a batch, and with the reason why a job was left out. Must not block.
  using OnFailure = std::function<void(DatabaseId, const Error&)>;
  struct Hooks {
    OnDueSoon on_due_soon;
    OnFailure on_failure = [](DatabaseId, const Error&) {};
  };
  // `databases`: all of this node's, the control database first. REQUIRES: their stores outlive the runner.
  BulkRunner(NodeId node, std::vector<BulkDatabase> databases, Hooks hooks);

  const char* name() const override { return "bulk"; }
  MonoTime step(MonoTime now) override;

  // Begins to run a bulk that this node has accepted. REQUIRES: this node has the bulk's lease. False: the runner has
  // another bulk; a node without one takes this bulk over when its lease has expired.
  bool take(Bulk bulk);
  bool is_busy() const { return bulk_.has_value(); }

 private:
  // Each returns when to call step() again.
  MonoTime look_for_bulk(MonoTime now);  // takes over a bulk whose lease has expired
  MonoTime run_batch(MonoTime now);
  MonoTime retry_later(MonoTime now) const;
  // Each returns false if a database did not answer. extend_lease() also does if the lease is lost; bulk_ is empty
  // then.
  bool load_progress();
  bool extend_lease(MonoTime now);
  // No batch changes anything from now on; reads what was changed. False: a database does not answer, try again. True
  // also if one has not answered for kCloseTime: the last batch there may be missing in changed().
  bool close_databases(MonoTime now);
  bool finish(BulkState state, std::string error);
  int batch_limit() const;
  std::int64_t changed() const;  // in all databases

  const NodeId node_;
  const std::vector<BulkDatabase> databases_;
  const Hooks hooks_;
  std::optional<Bulk> bulk_;
  std::size_t database_ = 0;                     // index of the present database in databases_; its size: all are done
  std::map<DatabaseId, std::int64_t> progress_;  // jobs changed, by database
  bool is_loaded_ = false;                       // progress_ includes what earlier nodes have changed
  MonoTime next_batch_{};                        // the rate allows no batch before
  std::optional<MonoTime> extended_at_;          // when the lease was extended last
  std::optional<MonoTime> closing_since_;        // when close_databases() was called first
  std::optional<MonoTime> next_look_;            // when to search for a bulk; nullopt: at once
};

// Stops a bulk. `node`: the calling node.
//  - A node runs the bulk: that node ends it within about a second.
//  - No node runs it (it waits for its turn, or its node has died): it has ended as `stopped` on return. If a database
//    does not answer, it is returned as `running`, and ends as `stopped` when a node takes it over.
// Returns the bulk, which may have ended before; nullopt: there is no such bulk. REQUIRES: the stores belong to the
// calling thread.
Result<std::optional<Bulk>> stop_bulk(std::span<const BulkDatabase> databases, NodeId node, std::int64_t bulk_id);

}  // namespace tocsin
