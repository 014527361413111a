// LaneCursor: how far the scans have read one lane (the jobs of one type in one shard), as positions in fire_at. The
// scanner reads the rows and reports them here.
//
//   ---- floor ---- low ------------- now ----------------- window position ------- end of the lookahead
//        |          | overdue: read by every scan |         | window: read next     |
//        | a sweep reads from here                |         | each row once         |
//
// Scans read from the low-water mark `low`, to skip the dead index entries of finished jobs. No live row lies before
// it, late commits apart: it stays a margin behind now, for transactions that commit late. Rows that commit later still
// are found by a sweep, which reads from the floor: before it no row can be committed any more (XminWatermark). A row
// that returns with an earlier fire_at moves low and floor back. An audit reads from the beginning of time and counts
// the rows before the floor: there should be none. Parts of a cursor: LaneLife, ExhaustedSearch.
//
// Invariants: floor <= low. Reads no clock. Thread: owner only (the scanner's).
#pragma once

#include <cstdint>
#include <utility>

#include "pipeline/exhausted_search.h"
#include "pipeline/lane_life.h"

namespace tocsin {

class LaneCursor {
 public:
  using Rows = ExhaustedSearch::Rows;

  // A search found a row of the lane at `now` (database clock). Nothing has been read yet. `is_paused`: its type is
  // paused, so only exhausted rows are read with this cursor; it ends when the type resumes.
  explicit LaneCursor(WallTime now, bool is_paused = false) : life_(now), window_at_(now), is_paused_(is_paused) {}
  bool is_paused() const { return is_paused_; }
  LaneLife& life() { return life_; }
  const LaneLife& life() const { return life_; }
  ExhaustedSearch& exhausted() { return exhausted_; }

  // Window, the rows due within the lookahead: fire_at and job_id of the last row read.
  WallTime window_at() const { return window_at_; }
  JobId window_id() const { return window_id_; }
  // Sets the position. id 0: rows due at `at` are still to be read.
  void move_window(WallTime at, JobId id = 0) { window_at_ = at, window_id_ = id; }
  // The last page of window rows was full, so more rows follow the position.
  bool is_page_full() const { return is_page_full_; }
  void end_page(bool is_full) { is_page_full_ = is_full; }  // a page was read
  // Reading ends at the position: memory is full, or a sweep begins anew. True: rows are left after it.
  bool stop_page() { return std::exchange(is_page_full_, false); }

  // Overdue, the rows due from the low-water mark to now.
  WallTime low() const { return low_; }
  WallTime floor() const { return floor_; }
  // Low goes back to the floor and the window to its beginning, so memory is offered every row again. Also requests a
  // search for exhausted rows, as begin_audit() does.
  void begin_sweep();
  // Low and floor go back to the beginning of time.
  void begin_audit();
  // An overdue read of [from, to) found `rows`: the oldest of the range, in order, all that fit into a page. Moves low
  // forward, and the floor too if the read began at or before it. A read that began after low has a gap before it and
  // moves nothing. `read_until`: rows due later were not read, or may be committed late. `no_commits_before`: no row
  // due earlier can be committed any more. Returns how many rows an audit found before the floor.
  std::int64_t read_overdue(WallTime from, WallTime to, const Rows& rows, WallTime read_until,
                            WallTime no_commits_before);
  // A row that was read before is pending again, due at `at` or later.
  void return_to(WallTime at);
  // Whether the last overdue read filled its page, so that exhausted rows may follow it.
  bool is_overdue_page_full() const { return is_overdue_page_full_; }
  void note_overdue_page(bool is_full) { is_overdue_page_full_ = is_full; }

 private:
  LaneLife life_;
  ExhaustedSearch exhausted_;
  WallTime window_at_;
  JobId window_id_ = 0;
  WallTime low_ = WallTime::min(), floor_ = WallTime::min();
  WallTime audited_floor_ = WallTime::min();  // the floor before the audit under way
  bool is_page_full_ = false, is_overdue_page_full_ = false;
  bool is_paused_ = false;
};

}  // namespace tocsin
