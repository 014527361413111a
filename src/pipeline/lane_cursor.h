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
// the rows before the floor: there should be none.
//
// Invariants: floor <= low. Reads no clock. Thread: owner only (the scanner's).
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "ports/job_store.h"

namespace tocsin {

// The data members are the positions of the reads, and what was seen there.
class LaneCursor {
 public:
  using Rows = std::vector<ScanReply::Row>;

  // A search found a row of the lane at `now` (database clock). Nothing has been read yet. `is_paused`: its type is
  // paused, so only exhausted rows are read with this cursor; it ends when the type resumes.
  explicit LaneCursor(WallTime now, bool is_paused = false)
      : window_at_(now), last_seen_at_(now), is_paused_(is_paused) {}
  bool is_paused() const { return is_paused_; }

  // Window: rows due within the lookahead -----------------------------------------------------------------------------

  // The position: fire_at and job_id of the last row read.
  WallTime window_at() const { return window_at_; }
  JobId window_id() const { return window_id_; }
  // The last page of window rows was full, so more rows follow the position.
  bool is_page_full() const { return is_page_full_; }
  // Sets the position. id 0: rows due at `at` are still to be read.
  void move_window(WallTime at, JobId id = 0) { window_at_ = at, window_id_ = id; }
  void end_page(bool is_full) { is_page_full_ = is_full; }  // a page was read
  // Reading ends at the position: memory is full, or a sweep begins anew. True: rows are left after it.
  bool stop_page() { return std::exchange(is_page_full_, false); }

  // Overdue: rows due from the low-water mark to now ------------------------------------------------------------------
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
  void note_overdue_page(bool is_full) { is_overdue_page_full_ = is_full; }

  // Exhausted rows: running their last attempt; they become dead when its lease has ended -----------------------------

  // Backlog claims, full overdue pages and pauses hide them, so every sweep searches for them among the overdue rows,
  // from where the last search ended. A scan reads one page of it, however few of the rows are exhausted.
  bool wants_exhausted() const { return wants_exhausted_; }
  // Whether the last overdue read filled its page, so that exhausted rows may follow it.
  bool is_overdue_page_full() const { return is_overdue_page_full_; }
  // The position: rows due then with greater ids, and later ones, are still to be read.
  WallTime exhausted_from() const { return exhausted_from_; }
  JobId exhausted_from_id() const { return exhausted_from_id_; }
  // The search read these rows behind the position. `is_page_full`: more may follow, and the next scan continues. Else
  // the search has ended; the next one begins with the oldest exhausted row found, which may not be dead by then.
  void read_exhausted(WallTime read_until, const Rows& rows, bool is_page_full);

  // Life time: a lane whose rows are gone needs no cursor; a search finds its next row --------------------------------

  // The next statement reads the lane, although its shard may not have its turn (ScanSchedule). True of a new cursor.
  bool is_read_at_once() const { return is_read_at_once_; }
  // Requests that. False: the last request is less than `pause` ago; the next scan of its shard reads the lane.
  bool read_at_once(MonoTime now, Duration pause) {
    if (now - last_request_ < pause) return false;
    last_request_ = now;
    return is_read_at_once_ = true;
  }
  // A statement reads the lane now, in a turn. `reads_all`: the window, too.
  void begin_turn(bool reads_all) { is_read_at_once_ = false, is_empty_ = reads_all; }
  // A read planned at `at` (database clock) found these rows.
  void note_read(WallTime at, const Rows& rows);
  // Whether the last turn read the whole lane without finding a row, and no row seen before is due later than `now`. A
  // row that was seen after the xmin watermark may still be visible to a snapshot; its dead index entry would slow the
  // search, so the cursor stays until the watermark has passed that time.
  bool may_be_forgotten(WallTime now, WallTime xmin_watermark) const {
    return !is_read_at_once_ && is_empty_ && last_seen_at_ < xmin_watermark && last_due_ < now;
  }

 private:
  WallTime window_at_;
  JobId window_id_ = 0;
  WallTime low_ = WallTime::min(), floor_ = WallTime::min();
  WallTime audited_floor_ = WallTime::min();  // the floor before the audit under way
  WallTime exhausted_from_ = WallTime::min();
  JobId exhausted_from_id_ = 0;                  // 0: no search is under way
  WallTime oldest_exhausted_ = WallTime::max();  // found by the search under way
  WallTime last_seen_at_;                        // when a row was seen last
  WallTime last_due_ = WallTime::min();          // of all rows seen
  MonoTime last_request_ = MonoTime(std::chrono::hours(-1));
  bool is_read_at_once_ = true;
  bool is_page_full_ = false, is_overdue_page_full_ = false;
  bool wants_exhausted_ = false;
  bool is_empty_ = false;  // the last turn read the whole lane, which had no row
  bool is_paused_ = false;
};

}  // namespace tocsin
