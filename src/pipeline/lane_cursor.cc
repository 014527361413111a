#include "pipeline/lane_cursor.h"

namespace tocsin {

void LaneCursor::begin_sweep() {
  low_ = floor_;
  move_window(WallTime::min());
  wants_exhausted_ = true;
}

void LaneCursor::begin_audit() {
  audited_floor_ = floor_;
  low_ = floor_ = WallTime::min();
  if (exhausted_from_id_ == 0) exhausted_from_ = WallTime::min();  // a long search comes to its end first
  wants_exhausted_ = true;
}

std::int64_t LaneCursor::read_overdue(WallTime from, WallTime to, const Rows& rows, WallTime read_until,
                                      WallTime no_commits_before) {
  if (from > low_) return 0;
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
  floor_ = std::min(floor_, low_);
  audited_floor_ = std::min(audited_floor_, low_);
}

void LaneCursor::read_exhausted(WallTime read_until, const Rows& rows, bool is_page_full) {
  for (const ScanReply::Row& row : rows)
    if (row.is_exhausted) oldest_exhausted_ = std::min(oldest_exhausted_, row.candidate.fire_at);
  wants_exhausted_ = is_page_full;
  exhausted_from_ = is_page_full ? rows.back().candidate.fire_at : std::min(oldest_exhausted_, read_until);
  exhausted_from_id_ = is_page_full ? rows.back().candidate.job_id : 0;
  if (!is_page_full) oldest_exhausted_ = WallTime::max();
}

void LaneCursor::note_read(WallTime at, const Rows& rows) {
  if (rows.empty()) return;
  is_empty_ = false;
  last_seen_at_ = at;
  last_due_ = std::max(last_due_, rows.back().candidate.fire_at);
}

}  // namespace tocsin
