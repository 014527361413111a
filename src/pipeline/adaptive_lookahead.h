// AdaptiveLookahead: how far ahead of now the scans read. Normally this is the configured lookahead. While memory is
// nearly full it is shorter, so that the jobs that are due next fit. Owned by the Scanner.
//
// The lookahead falls to its minimum in one step, and recovers by a thirty-second of its full length per scan. The
// minimum is one and a half scan intervals, so that every row is within the lookahead in a scan before it is due.
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

  // Call after every scan.
  //  - `fill`: how full memory is for the type with the most jobs, 0 to 1 (KnownJobs::highest_fill()).
  //  - `ample`: below this fill the lookahead recovers.
  //  - `has_refused`: memory was full for a hint (a job that a creator reported, so that it need not wait for a scan).
  // True: the lookahead is shorter now. Then the caller must move the window positions of lane cursors (how far the
  // scans have read each lane) back to the new end, where they lie beyond it.
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
  // The end of the lookahead. `planned_at`, here and below: the database's time for which the scan was planned.
  WallTime window_end(WallTime planned_at) const { return planned_at + now_; }
  // No cursor stands beyond this time, so a scan will still read the row of a job that is due later, and the hint of
  // such a job may be refused. max(): the lookahead is full, and no hint may be refused for its time. The horizon lies
  // a little after the window's end, because the hint of a retry names a time just after that of the job's row.
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
