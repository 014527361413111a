// LaneReadState: when the scans read one lane (the jobs of one type in one shard) next, and when its cursor may be
// forgotten. A lane whose rows are gone needs no cursor: a search finds its next row. Owned by LaneCursor. Reads no
// clock. Thread: owner only (the scanner's).
#pragma once

#include <algorithm>
#include <vector>

#include "ports/job_store.h"

namespace tocsin {

class LaneReadState {
 public:
  // A search found a row of the lane at `now` (database clock).
  explicit LaneReadState(WallTime now) : last_seen_at_(now) {}

  // Whether the next statement reads the lane, even if its shard has no turn then (ScanSchedule). True of a new lane.
  bool is_read_at_once() const { return is_read_at_once_; }
  // Requests such a read. False: the last request is less than `pause` ago, so the lane waits for its shard's turn.
  bool read_at_once(MonoTime now, Duration pause) {
    if (now - last_request_ < pause) return false;
    last_request_ = now;
    return is_read_at_once_ = true;
  }
  // A statement reads the lane now, in a turn. `reads_all`: the window, too.
  void begin_turn(bool reads_all) { is_read_at_once_ = false, is_empty_ = reads_all; }
  // A read planned at `at` (database clock) found these rows.
  void note_read(WallTime at, const std::vector<ScanReply::Row>& rows) {
    if (rows.empty()) return;
    is_empty_ = false;
    last_seen_at_ = at;
    last_due_ = std::max(last_due_, rows.back().candidate.fire_at);
  }
  // Whether the cursor may go: the last turn read the whole lane and found no row, and every row seen before was due
  // before `now`. A row that was seen after the xmin watermark (no row due before it can still be committed) may be
  // visible to an old snapshot. Its dead index entry would slow the search, so the cursor stays until the watermark has
  // passed the time at which a row was last seen.
  bool may_be_forgotten(WallTime now, WallTime xmin_watermark) const {
    return !is_read_at_once_ && is_empty_ && last_seen_at_ < xmin_watermark && last_due_ < now;
  }

 private:
  WallTime last_seen_at_;                // when a row was seen last
  WallTime last_due_ = WallTime::min();  // of all rows seen
  MonoTime last_request_ = MonoTime(std::chrono::hours(-1));
  bool is_read_at_once_ = true;
  bool is_empty_ = false;  // the last turn read the whole lane, which had no row
};

}  // namespace tocsin
