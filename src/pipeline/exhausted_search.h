// ExhaustedSearch: how far the scans have searched one lane (the jobs of one type in one shard) for exhausted rows. A
// row is exhausted while its last attempt runs; when the lease of that attempt has ended, the job becomes dead.
// Normally the overdue read of a scan finds such a row. While a lane is backlog or paused, or its overdue page is full,
// that read may miss the row, and no index lists exhausted rows. So every sweep (a scan from the lane's floor)
// searches for them.
//
// A scan reads one page of overdue rows for the search, and the next scan continues behind it. Owned by LaneCursor.
// Reads no clock. Thread: owner only (the scanner's).
#pragma once

#include <algorithm>
#include <vector>

#include "ports/job_store.h"

namespace tocsin {

class ExhaustedSearch {
 public:
  using Rows = std::vector<ScanReply::Row>;

  // Whether the next scan of the lane reads a page.
  bool is_wanted() const { return is_wanted_; }
  // The position: rows due at from() with ids above from_id(), and rows due later, are still to be read.
  WallTime from() const { return from_; }
  JobId from_id() const { return from_id_; }

  // A sweep begins: the search under way continues, or a new one begins at from().
  void begin() { is_wanted_ = true; }
  // An audit (a read from the beginning of time) begins: so does a new search, from the beginning of time. A search
  // under way is finished first; otherwise a search longer than the time between two audits would never end.
  void begin_anew() {
    if (from_id_ == 0) from_ = WallTime::min();
    begin();
  }
  // A scan read `rows`, the first ones behind the position. `is_page_full`: more rows may follow, and the search
  // continues. Otherwise the search has ended. The next search begins at the oldest exhausted row that this one found,
  // because that row may not be dead by then, or at `read_until` if there is none earlier.
  void note_page(WallTime read_until, const Rows& rows, bool is_page_full) {
    for (const ScanReply::Row& row : rows)
      if (row.is_exhausted) oldest_ = std::min(oldest_, row.candidate.fire_at);
    is_wanted_ = is_page_full;
    from_ = is_page_full ? rows.back().candidate.fire_at : std::min(oldest_, read_until);
    from_id_ = is_page_full ? rows.back().candidate.job_id : 0;
    if (!is_page_full) oldest_ = WallTime::max();
  }

 private:
  bool is_wanted_ = false;
  WallTime from_ = WallTime::min();
  JobId from_id_ = 0;                  // 0: no search is under way
  WallTime oldest_ = WallTime::max();  // exhausted row found by the search under way
};

}  // namespace tocsin
