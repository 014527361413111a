// DayWitness: decides which days of history retention may drop. The database's clock alone may be wrong by years, so a
// second source of time has to agree: the stored finishes, or the monotonic clock of this process.
//
// Invariants: a step of the database's clock, in whichever direction and however often, confirms at most the one day
// that it leads to. Thread: owner only.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "tocsin/clock.h"

namespace tocsin {

// A day (UTC) of history that is old by the database's clock.
struct PastDay {
  std::chrono::sys_days day;
  int keep = 0;             // whole days for which it is kept
  bool is_used = true;      // it holds finishes
  int later_days_used = 0;  // days after it that hold finishes
};

class DayWitness {
 public:
  // Reports the day that the database's clock shows.
  void see(std::chrono::sys_days today, MonoTime now) {
    if (!first_day_) since_ = now;
    first_day_ = std::min(today, first_day_.value_or(today));
  }
  // Whether the day may be dropped: `keep` later days hold finishes (a clock that steps adds one such day, not many),
  // or the process has run for `keep` days and the day precedes every day that it has seen.
  bool confirms(const PastDay& past, MonoTime now) const {
    if (!past.is_used || past.later_days_used >= past.keep) return true;
    return first_day_ && past.day < *first_day_ && now - since_ >= std::chrono::days(past.keep);
  }

 private:
  std::optional<std::chrono::sys_days> first_day_;  // the earliest seen
  MonoTime since_{};                                // when the first was seen
};

}  // namespace tocsin
