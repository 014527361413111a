// DayWitness: decides which days of history may be dropped. History has a table for each day (UTC) and final status;
// finishes are its rows. The housekeeping of each database (maintenance/housekeeping.h) owns one, and asks it about
// days that are old by the database's clock.
//
// That clock alone may be wrong by years. So for a day that holds finishes, a second source of time has to agree: the
// stored finishes of later days, or the monotonic clock of this process.
//
// Each wrong date that the clock shows, however far off, adds one later day with finishes, for as long as these are
// stored. So after N wrong dates, at most N days that hold finishes are dropped early: the oldest ones, each less than
// N days before its time.
// Thread: owner only (the housekeeping's thread).
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "tocsin/clock.h"

namespace tocsin {

// A day of history of one final status, old by the database's clock.
struct PastDay {
  std::chrono::sys_days day;
  int keep = 0;             // whole days for which it is kept (NodeConfig::retain_days)
  bool is_used = true;      // the day holds finishes
  int later_days_used = 0;  // number of later days that hold finishes, of any final status
};

class DayWitness {
 public:
  // Call before confirms(), with the day that the database's clock shows.
  void see(std::chrono::sys_days today, MonoTime now) {
    if (!first_day_) since_ = now;
    first_day_ = std::min(today, first_day_.value_or(today));
  }
  // Whether the day may be dropped. One of these must be true:
  //  - It holds no finishes.
  //  - More than `keep` later days hold finishes. Today counts, and so may every wrong date.
  //  - `keep` days have passed since the first see(), and the day is before every day seen.
  bool confirms(const PastDay& past, MonoTime now) const {
    if (!past.is_used || past.later_days_used > past.keep) return true;
    return first_day_ && past.day < *first_day_ && now - since_ >= std::chrono::days(past.keep);
  }

 private:
  std::optional<std::chrono::sys_days> first_day_;  // the earliest seen
  MonoTime since_{};                                // when the first was seen
};

}  // namespace tocsin
