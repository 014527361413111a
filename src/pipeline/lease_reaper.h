// LeaseReaper: the stage that makes jobs dead which cannot be claimed any more. Engine owns one. Such jobs are
//  - jobs whose lease ended on their last attempt, and
//  - jobs that are later than their type allows (drop_older_than_ms).
// The scanner finds both kinds and puts them into queues of EngineShared.
//
// This stage also checks the leases of the lease table (jobs that consumers or webhook receivers work on). It asks the
// database which leases in shards of this database have ended, so that their permits are free again. While the engine
// drains, or outcomes have waited for the database for longer than a lease's margin, only leases are checked: the
// outcome of an attempt counts although its lease has ended meanwhile.
//
// A step makes one store call. Errors are reported to the event sink; the next step comes after retry_pause.
// Thread: owner only (the stage's loop thread); the objects in EngineShared are safe for any thread.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "base/stage.h"
#include "pipeline/answer_limit.h"
#include "pipeline/engine_shared.h"
#include "pipeline/part_size.h"

namespace tocsin {

class LeaseReaper final : public Stage {
 public:
  LeaseReaper(EngineShared& shared, JobStore& store) : shared_(shared), store_(store) {}

  const char* name() const override { return "lease_reaper"; }
  MonoTime step(MonoTime now) override {
    if (now >= next_check_ && !shared_.flow->leases().is_empty()) return check_leases(now);
    const MonoTime later = shared_.flow->leases().is_empty() ? kWhenWoken : next_check_;
    if (shared_.membership.is_draining()) return later;
    if (shared_.has_late_outcomes(now)) return std::min(now + shared_.config.retry_pause, later);
    if (to_mark_dead_.empty()) to_mark_dead_ = shared_.expired.pop_some(shared_.config.finish_batch);
    return to_mark_dead_.empty() ? std::min(drop_late(now), later) : std::min(mark_dead(now), later);
  }

 private:
  MonoTime mark_dead(MonoTime now) {
    const std::size_t n = std::min(to_mark_dead_.size(), mark_size_.most());
    const auto marked_dead = store_.mark_dead({to_mark_dead_.data(), n});
    // A call refused for the values of one row is split until that row is alone, so that the others are written.
    if (!marked_dead && n > 1 && is_refused_row(marked_dead.error())) {
      shared_.events.failed(name(), marked_dead.error());
      mark_size_.note_refused(n);
      return now;
    }
    to_mark_dead_.erase(to_mark_dead_.begin(), to_mark_dead_.begin() + static_cast<std::ptrdiff_t>(n));
    // The next overdue scan finds these rows again.
    if (!marked_dead) return failed(now, marked_dead.error());
    mark_size_.note_success();
    shared_.events.count(Counter::marked_dead, *marked_dead);
    return now;
  }
  MonoTime drop_late(MonoTime now) {
    if (!late_) {
      const auto next = shared_.too_late.pop_some(1);
      if (next.empty()) return kWhenWoken;
      late_ = next.front();
      passed_ = 0;
    }
    const auto most = static_cast<int>(std::min(shared_.config.finish_batch, drop_size_.most()));
    const auto dropped = store_.drop_late(late_->lane, late_->before, most, passed_, shared_.config.node);
    // A refused call is split as in mark_dead(). Once the refused row is alone, later calls pass over it.
    if (!dropped && is_refused_row(dropped.error())) {
      drop_size_.note_refused(static_cast<std::size_t>(most));
      const MonoTime later = failed(now, dropped.error());
      if (most > 1) return now;
      ++passed_;
      return later;
    }
    if (!dropped || *dropped < most) late_.reset();
    if (!dropped) return failed(now, dropped.error());
    drop_size_.note_success();
    shared_.events.count(Counter::dropped_late, *dropped);
    return now;
  }
  // Checks the next kPiece leases of the table. A table with fewer leases is checked twice a second.
  MonoTime check_leases(MonoTime now) {
    LeaseTable& table = shared_.flow->leases();
    const auto leases = table.next(last_checked_, kPiece, *shared_.all_shards.get());
    const bool is_last = leases.size() < kPiece;
    last_checked_ = is_last ? 0 : leases.back().job_id;
    next_check_ = now + (is_last ? kRound : kBetweenPieces);
    if (leases.empty()) return now;
    const auto left = store_.leases_left(leases);
    if (!left) return failed(now, left.error());  // unknown leases stay
    for (std::size_t i = 0; i < leases.size(); ++i) table.note(leases[i], (*left)[i], now);
    return now;
  }
  MonoTime failed(MonoTime now, const Error& error) {
    shared_.events.failed(name(), error);
    return now + shared_.config.retry_pause;
  }

  static constexpr std::size_t kPiece = 1000;
  static constexpr Duration kRound = std::chrono::milliseconds(500);
  static constexpr Duration kBetweenPieces = std::chrono::milliseconds(50);

  EngineShared& shared_;
  JobStore& store_;
  MonoTime next_check_{};
  JobId last_checked_ = 0;        // the next check begins behind this job of the lease table
  std::optional<LateLane> late_;  // the lane whose too late rows are being made dead, some per call
  int passed_ = 0;                // how many rows of that lane the store refuses: calls pass over them
  std::vector<JobId> to_mark_dead_;
  PartSize mark_size_, drop_size_;
};

}  // namespace tocsin
