// DayWitness: decides which of the days of history that are old by the database's clock may be dropped. The
// housekeeping of each database has one. That clock alone may be wrong by years, so where a day holds finishes a second
// source of time has to agree: the stored finishes, or the monotonic clock of this process.
//
// Each wrong date that a clock shows, however far off, adds one later day with finishes, for as long as they are
// stored. So after N wrong dates at most N days that hold finishes are dropped early: those that would go next, less
// than N days before their time. Thread: owner only.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "tocsin/clock.h"

namespace tocsin {

// A day (UTC) of history of one final status that is old by the database's clock.
struct PastDay {
  std::chrono::sys_days day;
  int keep = 0;             // whole days for which it is kept (NodeConfig::retain_days)
  bool is_used = true;      // it holds finishes
  int later_days_used = 0;  // days after it that hold finishes, of whichever status
};

class DayWitness {
 public:
  // Call before confirms(), with the day that the database's clock shows.
  void see(std::chrono::sys_days today, MonoTime now) {
    if (!first_day_) since_ = now;
    first_day_ = std::min(today, first_day_.value_or(today));
  }
  // Whether the day may be dropped: it holds no finishes; or more than `keep` later days hold some (today counts, and
  // so may every wrong date); or `keep` days have passed since the first see(), and the day is before every day seen.
  bool confirms(const PastDay& past, MonoTime now) const {
    if (!past.is_used || past.later_days_used > past.keep) return true;
    return first_day_ && past.day < *first_day_ && now - since_ >= std::chrono::days(past.keep);
  }

 private:
  std::optional<std::chrono::sys_days> first_day_;  // the earliest seen
  MonoTime since_{};                                // when the first was seen
};

}  // namespace tocsin
