// SearchPace: which cycles of scans search for lanes (a lane: the jobs of one type in one shard) that have no cursor. A
// cycle reads every shard once (ScanSchedule). Many lanes whose rows are due later make a search expensive; then
// searches are made less often. Owned by the Scanner.
//
// Rule: searches take a fortieth of the time, as long as every job is still found before it is due. A job that is
// created due within the lookahead is hinted or notified. A job that is created due later, right after a search, must
// be found by the next search. So the answer of the next search comes within the lookahead after the last one was sent.
// A quarter of a scan interval is left to read what the search finds. While hints may be missed, every cycle searches.
//
// Thread: owner only (the scanner's). Reads no clock.
#pragma once

#include <algorithm>

#include "tocsin/clock.h"

namespace tocsin {

class SearchPace {
 public:
  SearchPace(Duration lookahead, Duration scan_interval)
      : longest_(lookahead - scan_interval / 4), longest_cycle_(scan_interval * 2) {}

  // Decides whether the cycle that begins now searches. `are_hints_complete`: every job that is created due within the
  // lookahead is hinted or notified, so none has to be found by a search.
  void begin_cycle(MonoTime now, bool are_hints_complete) {
    is_searching_ = !are_hints_complete || now + longest_cycle_ >= next_;
    if (!is_searching_) return;
    began_ = now;
    took_ = Duration(0);
    may_wait_ = are_hints_complete;
  }
  bool is_searching() const { return is_searching_; }
  // Adds the duration of a scan that has searched shards of this cycle (all of them, or a scan group).
  void note_search(Duration took) { took_ += took; }
  void end_cycle() {
    if (is_searching_) next_ = may_wait_ ? began_ + std::min(took_ * kPart, longest_ - took_) : MonoTime::min();
  }
  // The next cycle searches.
  void search_at_once() { next_ = MonoTime::min(); }

 private:
  static constexpr Duration::rep kPart = 40;
  const Duration longest_, longest_cycle_;
  bool is_searching_ = true;
  bool may_wait_ = false;            // hints were complete when the last search began
  MonoTime began_{};                 // the last cycle that searched
  Duration took_{0};                 // its searches
  MonoTime next_ = MonoTime::min();  // a search must have begun by then
};

}  // namespace tocsin
