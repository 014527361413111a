#include "pipeline/lane_cursor.h"

namespace tocsin {

void LaneCursor::begin_sweep() {
  low_ = floor_;
  move_window(WallTime::min());
  wants_exhausted_ = true;
}

void LaneCursor::begin_audit() {
  audited_floor_ = floor_;
  low_ = floor_ = exhausted_from_ = WallTime::min();
  wants_exhausted_ = true;
}

std::int64_t LaneCursor::read_overdue(WallTime from, WallTime to, const Rows& rows, WallTime read_until,
                                      WallTime no_commits_before) {
  if (from > low_) return 0;
  const WallTime first = rows.empty() ? WallTime::max() : rows.front().candidate.fire_at - Duration(1);
  low_ = std::min({to, read_until, first});
  if (from > floor_) return 0;
  floor_ = std::max(floor_, std::min(no_commits_before, low_));
  const WallTime audited = std::exchange(audited_floor_, WallTime::min());
  return std::ranges::count_if(rows, [&](const auto& row) { return row.candidate.fire_at < audited; });
}

void LaneCursor::return_to(WallTime at) {
  low_ = std::min(low_, at - Duration(1));
  floor_ = std::min(floor_, low_);
  audited_floor_ = std::min(audited_floor_, low_);
}

void LaneCursor::read_exhausted(WallTime read_until, const Rows& rows, bool is_page_full) {
  wants_exhausted_ = is_page_full;
  exhausted_from_ = rows.empty() ? std::max(exhausted_from_, read_until) : rows.front().candidate.fire_at - Duration(1);
}

void LaneCursor::note_read(WallTime at, const Rows& rows) {
  if (rows.empty()) return;
  is_empty_ = false;
  last_seen_at_ = at;
  last_due_ = std::max(last_due_, rows.back().candidate.fire_at);
}

}  // namespace tocsin
