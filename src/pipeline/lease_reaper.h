// LeaseReaper: the stage that makes jobs dead which cannot be claimed any more. Engine owns one. Such jobs are
//  - exhausted jobs, whose lease ended on their last attempt, and
//  - too-late jobs, which are later than their type allows (drop_older_than_ms).
// The scanner finds both kinds and puts them into queues of EngineShared.
//
// This stage also checks the leases of the lease table (jobs that consumers or webhook receivers work on). It asks the
// database which leases in shards of this database have ended, so that their permits are free again. While the engine
// drains, or outcomes have waited for the database for longer than a lease's margin, or a claim is in doubt or was a
// moment ago (claims_in_doubt.h), only leases are checked: the outcome of an attempt counts although its lease has
// ended meanwhile, and a job that was claimed without an answer has not started, and is released.
//
// Exhausted jobs and too-late lanes take turns. An exhausted job that the store refuses to make dead is set aside for
// ten seconds at most: every scan finds it again, and many such jobs must not hold up the others.
//
// A step makes one store call. Errors are reported to the event sink; the next step comes after retry_pause. After a
// refused too-late row the next drop waits retry_pause, because each drop skips the refused rows by counting them.
// Exhausted jobs do not wait.
// Thread: owner only (the stage's loop thread); the objects in EngineShared are safe for any thread.
#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "base/part_size.h"
#include "base/stage.h"
#include "pipeline/answer_limit.h"
#include "pipeline/engine_shared.h"

namespace tocsin {

class LeaseReaper final : public Stage {
 public:
  LeaseReaper(EngineShared& shared, JobStore& store) : shared_(shared), store_(store) {}

  const char* name() const override { return "lease_reaper"; }
  MonoTime step(MonoTime now) override {
    if (now >= next_check_ && !shared_.flow->leases().is_empty()) return check_leases(now);
    const MonoTime later = shared_.flow->leases().is_empty() ? kWhenWoken : next_check_;
    if (shared_.membership.is_draining()) return later;
    if (shared_.has_late_outcomes(now) || shared_.claims_in_doubt.may_hold_jobs(now))
      return std::min(now + shared_.config.retry_pause, later);
    take_work(now);
    const bool is_drop_due = too_late_ && next_drop_ <= now;
    if (to_mark_dead_.empty() && !is_drop_due) return too_late_ ? std::min(next_drop_, later) : later;
    is_turn_of_drop_ = is_drop_due && (to_mark_dead_.empty() || !is_turn_of_drop_);
    return std::min(is_turn_of_drop_ ? drop_too_late(now) : mark_dead(now), later);
  }

 private:
  // Takes jobs that are not set aside, and a too-late lane, from the queues if there are none.
  void take_work(MonoTime now) {
    if (now >= set_aside_until_) {
      set_aside_.clear();
      set_aside_until_ = now + kSetAsideTime;
    }
    while (to_mark_dead_.empty() && shared_.expired.size() > 0) {
      to_mark_dead_ = shared_.expired.pop_some(shared_.config.finish_batch);
      std::erase_if(to_mark_dead_, [&](JobId job) { return set_aside_.contains(job); });
    }
    if (too_late_ || shared_.too_late.size() == 0) return;
    too_late_ = shared_.too_late.pop_some(1).front();
    passed_ = 0;
  }
  MonoTime mark_dead(MonoTime now) {
    const std::size_t n = std::min(to_mark_dead_.size(), mark_size_.most());
    const auto marked_dead = store_.mark_dead({to_mark_dead_.data(), n});
    // A call refused for the values of one row is split until that row is alone, so that the others are written.
    if (!marked_dead && is_refused_row(marked_dead.error())) {
      shared_.events.failed(name(), marked_dead.error());
      mark_size_.note_refused(n);
      if (n > 1) return now;
      set_aside_.insert(to_mark_dead_.front());
      to_mark_dead_.erase(to_mark_dead_.begin());
      return now;
    }
    to_mark_dead_.erase(to_mark_dead_.begin(), to_mark_dead_.begin() + static_cast<std::ptrdiff_t>(n));
    // The next overdue scan finds these rows again.
    if (!marked_dead) return failed(now, marked_dead.error());
    mark_size_.note_success();
    shared_.events.count(Counter::marked_dead, *marked_dead);
    return now;
  }
  MonoTime drop_too_late(MonoTime now) {
    const auto most = static_cast<int>(std::min(shared_.config.finish_batch, drop_size_.most()));
    const auto dropped = store_.drop_too_late(too_late_->lane, too_late_->before, most, passed_, shared_.config.node);
    // A refused call is split as in mark_dead(). Once the refused row is alone, later calls pass over it.
    if (!dropped && is_refused_row(dropped.error())) {
      shared_.events.failed(name(), dropped.error());
      drop_size_.note_refused(static_cast<std::size_t>(most));
      if (most > 1) return now;
      ++passed_;
      next_drop_ = now + shared_.config.retry_pause;
      return now;
    }
    if (!dropped || *dropped < most) too_late_.reset();
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

  static constexpr Duration kSetAsideTime = std::chrono::seconds(10);
  static constexpr std::size_t kPiece = 1000;
  static constexpr Duration kRound = std::chrono::milliseconds(500);
  static constexpr Duration kBetweenPieces = std::chrono::milliseconds(50);

  EngineShared& shared_;
  JobStore& store_;
  MonoTime next_check_{};
  JobId last_checked_ = 0;               // the next check begins behind this job of the lease table
  std::optional<TooLateLane> too_late_;  // the lane whose too late rows are being made dead, some per call
  int passed_ = 0;                       // how many rows of that lane the store refuses: calls pass over them
  std::vector<JobId> to_mark_dead_;
  bool is_turn_of_drop_ = true;  // the last of these calls was of drop_too_late(), or there was none
  MonoTime next_drop_{};         // not before: the store has refused a too-late row
  std::set<JobId> set_aside_;    // refused within the last kSetAsideTime; one call adds one job at most
  MonoTime set_aside_until_{};   // of all of them
  PartSize mark_size_, drop_size_;
};

}  // namespace tocsin
