// ExhaustedSearch: how far the scans have searched one lane for exhausted rows. A row is exhausted while its last
// attempt runs; its job becomes dead when its lease has ended. Backlog claims, full overdue pages and pauses hide such
// rows, and no index knows them, so every sweep searches for them among the overdue rows.
//
// A scan reads one page of the search, however few of its rows are exhausted, and the next scan continues there. Part
// of LaneCursor. Reads no clock. Thread: owner only (the scanner's).
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
  // The position: rows due then with greater ids, and later ones, are still to be read.
  WallTime from() const { return from_; }
  JobId from_id() const { return from_id_; }

  // A sweep: the search continues, or begins where the last one said.
  void begin() { is_wanted_ = true; }
  // An audit: the search begins at the beginning of time. One that is under way comes to its end first, or a search
  // longer than the time between two audits never would.
  void begin_anew() {
    if (from_id_ == 0) from_ = WallTime::min();
    begin();
  }
  // A scan read these rows behind the position. `is_page_full`: more may follow. Else the search has ended; the next
  // one begins with the oldest exhausted row found, which may not be dead by then, or at `read_until`.
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
