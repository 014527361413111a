// ScanOverflow: the lanes (the jobs of one type in one shard) of which scans left rows unread, because memory was full
// or the scan ended after a full page (LaneCursor::stop_page()). Each has an overflow watermark: the earliest fire_at
// that may be unread.
//
// When that time has passed, and memory has few due jobs of the type left or a lane of the type has become backlog, the
// scanner promotes all such lanes of the type at once: they become backlog, whose jobs are claimed from the table. So
// none of them is served before the others. Reads no clock. Thread: owner only (the scanner's).
#pragma once

#include <algorithm>
#include <functional>
#include <map>

#include "ports/job_store.h"

namespace tocsin {

class ScanOverflow {
 public:
  // Rows of the lane due at `from` or later are not in memory.
  void note(Lane lane, WallTime from) {
    const auto [it, is_new] = lanes_.try_emplace(lane, from);
    it->second = std::min(it->second, from);
    first_ = std::min(first_, from);
  }
  void forget(Lane lane) { lanes_.erase(lane); }
  // Forgets a watermark within [from, to): a scan reads these rows now, or the backlog has them.
  void forget_within(Lane lane, WallTime from, WallTime to) {
    const auto it = lanes_.find(lane);
    if (it != lanes_.end() && from <= it->second && it->second < to) lanes_.erase(it);
  }
  void clear() {
    lanes_.clear();
    first_ = WallTime::max();
  }
  bool contains(Lane lane) const { return lanes_.contains(lane); }
  // No lane can be promoted before this time; max(): there is none.
  WallTime first() const { return first_; }

  // Calls `promote` for the lanes whose watermark lies at or before `due_by`, of the types that `is_selected` accepts,
  // and forgets these lanes.
  void promote(WallTime due_by, const std::function<bool(TypeId)>& is_selected,
               const std::function<void(Lane, WallTime)>& promote) {
    if (first_ > due_by) return;
    first_ = WallTime::max();
    for (auto it = lanes_.begin(); it != lanes_.end();) {
      const auto [lane, from] = *it;
      if (from <= due_by && is_selected(lane.type_id)) {
        promote(lane, from);
        it = lanes_.erase(it);
      } else {
        first_ = std::min(first_, from);
        ++it;
      }
    }
  }

 private:
  std::map<Lane, WallTime> lanes_;
  WallTime first_ = WallTime::max();  // the earliest watermark, or earlier
};

}  // namespace tocsin
