// DayWitness: decides which days of history retention may drop. The database's clock alone may be wrong by years, so
// where a day holds finishes a second source of time has to agree: the stored finishes, or the monotonic clock of this
// process.
//
// A wrong clock brings finishes of one wrong day, however far and often it steps within a day. So a step can drop the
// day whose time would have come next, less than a day early, and no other that holds finishes. Thread: owner only.
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
  int later_days_used = 0;  // days after it that hold finishes, of whichever status
};

class DayWitness {
 public:
  // Reports the day that the database's clock shows.
  void see(std::chrono::sys_days today, MonoTime now) {
    if (!first_day_) since_ = now;
    first_day_ = std::min(today, first_day_.value_or(today));
  }
  // Whether the day may be dropped: it holds no finishes; or more than `keep` later days hold some (today is one, a
  // wrong day may be another); or `keep` days have passed since the first see(), and the day precedes every day seen.
  bool confirms(const PastDay& past, MonoTime now) const {
    if (!past.is_used || past.later_days_used > past.keep) return true;
    return first_day_ && past.day < *first_day_ && now - since_ >= std::chrono::days(past.keep);
  }

 private:
  std::optional<std::chrono::sys_days> first_day_;  // the earliest seen
  MonoTime since_{};                                // when the first was seen
};

}  // namespace tocsin
