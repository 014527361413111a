#include "pipeline/lane_cursor.h"

#include <algorithm>

namespace tocsin {

void LaneCursor::begin_sweep() {
  low_ = floor_;
  is_low_unread_ = true;
  move_window(WallTime::min());
  exhausted_.begin();
}

void LaneCursor::begin_audit() {
  audited_floor_ = floor_;
  low_ = floor_ = WallTime::min();
  is_low_unread_ = true;
  exhausted_.begin_anew();
}

std::int64_t LaneCursor::read_overdue(WallTime from, WallTime to, const Rows& rows, WallTime read_until,
                                      WallTime no_commits_before) {
  if (from > low_) return 0;
  is_low_unread_ = false;
  const WallTime first = rows.empty() ? WallTime::max() : rows.front().candidate.fire_at - Duration(1);
  low_ = std::min({to, read_until, first});
  if (from > floor_) return 0;
  floor_ = std::max(floor_, std::min(no_commits_before, low_));
  // A read of the rows that are too late comes first and may end, without a row, before that floor.
  const WallTime audited = audited_floor_;
  if (to >= audited || !rows.empty()) audited_floor_ = WallTime::min();
  return std::ranges::count_if(rows, [&](const auto& row) { return row.candidate.fire_at < audited; });
}

void LaneCursor::return_to(WallTime at) {
  low_ = std::min(low_, at - Duration(1));
  is_low_unread_ = true;
  floor_ = std::min(floor_, low_);
  audited_floor_ = std::min(audited_floor_, low_);
}

}  // namespace tocsin
