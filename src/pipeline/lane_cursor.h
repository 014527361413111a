// Where the scans of one lane stand.
//
//   ---- floor ---- low ------------- now ----------------- window position ------- horizon
//        |          | overdue: read by every scan |         | window: read next     |
//        | a sweep reads from here                |         | each row once         |
//
// The low-water mark skips the dead index entries of finished jobs. It stays a margin behind now, for transactions that
// commit late; what is committed later still is found by a sweep, from the floor, before which nothing can be committed
// any more (XminWatermark); a row that comes back with an earlier time moves all of them back. The audit reads from the
// beginning of time and counts what lies before the floor.
//
// Invariants: floor <= low. Called by the scanner. Reads no clock. Thread: owner only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "ports/job_store.h"

namespace tocsin {

class LaneCursor {
 public:
  using Rows = std::vector<ScanReply::Row>;

  // `now`: when a search found a row of the lane. Nothing of the lane has been read yet.
  explicit LaneCursor(WallTime now) : window_at_(now), seen_at_(now) {}

  // Window ------------------------------------------------------------------------------------------------------------
  WallTime window_at() const { return window_at_; }
  JobId window_id() const { return window_id_; }
  bool is_page_full() const { return is_page_full_; }  // more rows follow the position
  void move_window(WallTime at, JobId id = 0) { window_at_ = at, window_id_ = id; }
  void end_page(bool is_full) { is_page_full_ = is_full; }
  // Memory is full: reading stops here. True: rows are left after the position.
  bool stop_page() { return std::exchange(is_page_full_, false); }

  // Overdue -----------------------------------------------------------------------------------------------------------
  WallTime low() const { return low_; }
  WallTime floor() const { return floor_; }
  void begin_sweep();
  void begin_audit();
  // [from, to) was read and holds these rows, the oldest first. `seen`: rows due later were not read, or may be
  // committed late. `settled`: no row due earlier can be committed any more. Returns how many rows an audit found
  // before the floor.
  std::int64_t read_overdue(WallTime from, WallTime to, const Rows& rows, WallTime seen, WallTime settled);
  // A row that was read before has come back, due at `at` or later.
  void return_to(WallTime at);
  void note_overdue_page(bool is_full) { is_overdue_page_full_ = is_full; }

  // Exhausted jobs behind other overdue rows: looked for once per sweep, from where the last search ended ------------
  bool wants_exhausted() const { return wants_exhausted_; }
  bool is_overdue_page_full() const { return is_overdue_page_full_; }
  WallTime exhausted_from() const { return exhausted_from_; }
  // `rows`: all exhausted ones; the oldest is looked at again next time, for it may still be there.
  void read_exhausted(WallTime seen, const Rows& rows, bool is_page_full);

  // Sleep: a lane whose rows are gone needs no cursor; a search finds its next row ------------------------------------
  bool is_new() const { return is_new_; }
  // The next statement reads the whole lane. False: that happened less than `pause` ago; the next scan reads it.
  bool begin_anew(MonoTime now, Duration pause) {
    if (now - begun_anew_ < pause) return false;
    begun_anew_ = now;
    return is_new_ = true;
  }
  void begin_turn(bool reads_all) { is_new_ = false, is_empty_ = reads_all; }
  void note_read(WallTime at, const Rows& rows);
  // `reached`: the xmin watermark; until then dead index entries of its rows may lie at its beginning.
  bool is_asleep(WallTime now, WallTime reached) const {
    return !is_new_ && is_empty_ && seen_at_ < reached && last_due_ < now;
  }

 private:
  WallTime window_at_;
  JobId window_id_ = 0;
  WallTime low_ = WallTime::min(), floor_ = WallTime::min();
  WallTime audited_floor_ = WallTime::min();  // of the audit under way
  WallTime exhausted_from_ = WallTime::min();
  WallTime seen_at_;                     // when a row was seen last
  WallTime last_due_ = WallTime::min();  // of all rows seen
  MonoTime begun_anew_ = MonoTime(std::chrono::hours(-1));
  bool is_new_ = true;
  bool is_page_full_ = false, is_overdue_page_full_ = false;
  bool wants_exhausted_ = false;
  bool is_empty_ = false;  // the whole lane was read in its turn, and had no row
};

}  // namespace tocsin
