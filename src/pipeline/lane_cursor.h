// LaneCursor: how far the scans have read one lane (the jobs of one type in one shard), as positions in fire_at, the
// time at which a row is due. Owned by the Scanner, which reads the rows and reports them here.
//
//   ---- floor ---- low ------------- now ----------------- window position ------- end of the lookahead
//        |          | overdue: read by every scan |         | window: read next     |
//        | a sweep reads from here                |         | each row once         |
//
// Scans read overdue rows from the low-water mark `low`, which skips the dead index entries of finished jobs. No live
// row is due before `low`, except rows that are committed late. `low` stays a margin behind now, for transactions that
// commit within that margin.
//
// A sweep is a read from the floor. It finds rows that were committed later still, because no row due before the floor
// can be committed any more (XminWatermark). A row that returns with an earlier fire_at moves `low` and floor back. An
// audit is a read from the beginning of time. It counts the rows before the floor; there should be none. A cursor owns
// a LaneReadState (when the lane is read next) and an ExhaustedSearch.
//
// Invariants: floor <= low. Reads no clock. Thread: owner only (the scanner's).
#pragma once

#include <cstdint>
#include <utility>

#include "pipeline/exhausted_search.h"
#include "pipeline/lane_read_state.h"

namespace tocsin {

class LaneCursor {
 public:
  using Rows = ExhaustedSearch::Rows;

  // A search found a row of the lane at `now` (database clock); nothing has been read yet. `is_paused`: the type is
  // paused, so this cursor reads only exhausted rows (rows whose last attempt runs). It ends when the type resumes.
  explicit LaneCursor(WallTime now, bool is_paused = false)
      : read_state_(now), window_at_(now), is_paused_(is_paused) {}
  bool is_paused() const { return is_paused_; }
  LaneReadState& read_state() { return read_state_; }
  const LaneReadState& read_state() const { return read_state_; }
  ExhaustedSearch& exhausted() { return exhausted_; }

  // The window position, in the rows due within the lookahead: fire_at and job_id of the last row read.
  WallTime window_at() const { return window_at_; }
  JobId window_id() const { return window_id_; }
  // Sets the window position. `id` 0: rows due at `at` are still to be read.
  void move_window(WallTime at, JobId id = 0) { window_at_ = at, window_id_ = id; }
  // Whether the last page of window rows was full, so that more rows follow the position.
  bool is_page_full() const { return is_page_full_; }
  void end_page(bool is_full) { is_page_full_ = is_full; }  // call after each page
  // Ends reading at the position, because memory is full or a sweep begins. True: rows are left after the position.
  bool stop_page() { return std::exchange(is_page_full_, false); }

  // The range of overdue rows begins at the low-water mark and ends at now.
  WallTime low() const { return low_; }
  WallTime floor() const { return floor_; }
  // Moves `low` back to the floor and the window position to the beginning of time, so that memory is offered every row
  // again. Also requests a search for exhausted rows (ExhaustedSearch), as begin_audit() does.
  void begin_sweep();
  // Moves `low` and the floor back to the beginning of time.
  void begin_audit();
  // An overdue read of [from, to) found `rows`: the oldest rows of the range, in order, as many as fit into a page.
  // Moves `low` forward, and the floor too if the read began at or before the floor. A read that began after `low`
  // would leave a gap, so it moves nothing.
  //  - `read_until`: rows due later were not read, or may be committed late.
  //  - `no_commits_before`: no row due earlier can be committed any more.
  // Returns how many rows an audit found before the floor; 0 for other reads.
  std::int64_t read_overdue(WallTime from, WallTime to, const Rows& rows, WallTime read_until,
                            WallTime no_commits_before);
  // A row that was read before is pending again, due at `at` or later: moves `low` and the floor back before `at`.
  void return_to(WallTime at);
  // True at first, and after `low` was set back, until an overdue read begins at `low`: rows may lie before those that
  // a backlog of the lane covers.
  bool is_low_unread() const { return is_low_unread_; }
  // Whether the last overdue read filled its page, so that exhausted rows may follow it.
  bool is_overdue_page_full() const { return is_overdue_page_full_; }
  void note_overdue_page(bool is_full) { is_overdue_page_full_ = is_full; }

 private:
  LaneReadState read_state_;
  ExhaustedSearch exhausted_;
  WallTime window_at_;
  JobId window_id_ = 0;
  WallTime low_ = WallTime::min(), floor_ = WallTime::min();
  WallTime audited_floor_ = WallTime::min();  // the floor before the audit under way
  bool is_low_unread_ = true;
  bool is_page_full_ = false, is_overdue_page_full_ = false;
  bool is_paused_ = false;
};

}  // namespace tocsin
