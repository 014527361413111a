// Runs the bulk operations of this node: one bulk and one batch at a time, at the rate that was asked for.
//
// The node that accepted a bulk runs it under a lease, kept in the control database. When a node has ended, another one
// takes its bulk over once the lease has ended. A node that loses the lease stops working on the bulk: at most one
// batch overlaps, and every batch locks the stored progress.
// Thread: owner only.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "base/stage.h"
#include "bulk/bulk_store.h"

namespace tocsin {

// A step makes up to three store calls, so the simulator does not run this stage.
class BulkRunner final : public Stage {
 public:
  static constexpr Duration kLease = std::chrono::seconds(15);
  static constexpr Duration kLookInterval = std::chrono::seconds(30);  // between searches for a bulk to take over
  static constexpr int kBatch = 500;                                   // jobs per transaction: some 20 ms of row locks

  // Called with each changed job that is due within the lookahead: hints it to its shard's owner.
  using OnDueSoon = std::function<void(const Candidate&)>;
  // REQUIRES: `databases` is not empty; the first is the control database.
  BulkRunner(NodeId node, std::vector<BulkDatabase> databases, OnDueSoon on_due_soon);

  const char* name() const override { return "bulk"; }
  MonoTime step(MonoTime now) override;

  // Runs this bulk next. REQUIRES: this node has its lease. False: another bulk runs here; a node that is free takes
  // this one over after its lease has ended.
  bool take(Bulk bulk);
  bool is_busy() const { return bulk_.has_value(); }

 private:
  MonoTime look(MonoTime now);
  bool load_progress();
  MonoTime run_batch(MonoTime now);
  MonoTime retry_later(MonoTime now) const;
  bool keep(MonoTime now);
  bool finish(BulkState state, std::string error);
  int batch_limit() const;
  std::int64_t changed() const;

  const NodeId node_;
  const std::vector<BulkDatabase> databases_;
  const OnDueSoon on_due_soon_;
  std::optional<Bulk> bulk_;
  std::size_t database_ = 0;                     // index of the database whose jobs are being changed
  std::map<DatabaseId, std::int64_t> progress_;  // jobs changed, by database
  bool is_loaded_ = false;                       // progress_ includes what other nodes have changed
  MonoTime next_batch_{};
  std::optional<MonoTime> kept_at_;
  std::optional<MonoTime> next_look_;
};

}  // namespace tocsin
