// How far ahead of now the scans read: the configured lookahead, and less while memory is nearly full, so that
// the jobs that are due next fit.
//
// Falls to its minimum in one step and recovers by a thirty-second of the lookahead per cycle. The minimum is one and a
// half scan intervals: no row may become due between two scans without having been in a window. Gain (a storm of
// 40,000 jobs/s): docs/adr/0030. Thread: owner only.
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

  // Once per cycle. `fill`: the part of its share of memory that the fullest type uses, 0 to 1. `ample`: below this
  // fill the lookahead recovers. `has_refused`: memory was full for a hint. True: it has become shorter, and window
  // cursors beyond the new end must be pulled back.
  bool adapt(double fill, double ample, bool has_refused) {
    if (fill < ample && !has_refused) {
      now_ = std::min(lookahead_, now_ + lookahead_ / kStepsToRecover);
      return false;
    }
    if ((fill <= kNearlyFull && !has_refused) || now_ <= least_) return false;
    now_ = least_;
    return true;
  }

  bool is_full() const { return now_ == lookahead_; }
  WallTime window_end(WallTime planned_at) const { return planned_at + now_; }
  // No window cursor lies beyond it, so a hint of a later job may be refused: a scan will read its row. max(): no hint
  // may be refused for that. A little further than the window, because the hint of a retry names a time just after its
  // row's.
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
