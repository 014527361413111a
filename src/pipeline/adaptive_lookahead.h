// AdaptiveLookahead: how far ahead of now the scans read. The configured lookahead, and less while memory is nearly
// full, so that the jobs that are due next fit.
//
// Falls to its minimum in one step and recovers by a thirty-second of the lookahead per scan. The minimum is one and a
// half scan intervals: no row may become due between two scans of its lane without having been within the lookahead.
// Reads no clock. Thread: owner only (the scanner's).
#pragma once

#include <algorithm>

#include "ports/job_store.h"

namespace tocsin {

class AdaptiveLookahead {
 public:
  AdaptiveLookahead(Duration lookahead, Duration scan_interval)
      : lookahead_(lookahead),
        least_(std::min(lookahead, scan_interval * 3 / 2)),
        slack_(scan_interval / 4),
        now_(lookahead) {}

  // Call after every scan. `fill`: the part of its share of memory that the fullest type uses, 0 to 1. `ample`: below
  // this fill the lookahead recovers. `has_refused`: memory was full for a hint (a job that a creator reported, so that
  // it need not wait for a scan). True: the lookahead is shorter now, and the caller must move the window positions of
  // lane cursors that lie beyond the new end back to it.
  bool adapt(double fill, double ample, bool has_refused) {
    if (fill < ample && !has_refused) {
      now_ = std::min(lookahead_, now_ + lookahead_ / kStepsToRecover);
      return false;
    }
    if ((fill <= kNearlyFull && !has_refused) || now_ <= least_) return false;
    now_ = least_;
    return true;
  }

  bool is_full() const { return now_ == lookahead_; }  // not shortened; says nothing of memory
  // `planned_at`, here and below: the database's time for which the scan was planned.
  WallTime window_end(WallTime planned_at) const { return planned_at + now_; }
  // No cursor stands beyond this time, so a hint of a later job may be refused: a scan will read its row. max(): the
  // lookahead is full, and no hint may be refused for its time. It lies a little after the window's end, because the
  // hint of a retry names a time just after its row's.
  WallTime scan_horizon(WallTime planned_at) const {
    return is_full() ? WallTime::max() : window_end(planned_at) + slack_;
  }

 private:
  static constexpr double kNearlyFull = 0.875;
  static constexpr Duration::rep kStepsToRecover = 32;
  const Duration lookahead_, least_, slack_;
  Duration now_;
};

}  // namespace tocsin
