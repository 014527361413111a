// DayWitness: decides which days of history may be dropped. History has a table for each day (UTC) and final status;
// finishes are its rows. The housekeeping of each database (maintenance/housekeeping.h) owns one, and asks it about
// days that are old by the database's clock.
//
// That clock alone may be wrong by years. So for a day that holds finishes, a second source of time has to agree: the
// stored finishes of later days, or the monotonic clock of this process.
//
// Each wrong date that the clock shows adds one day with finishes. Days later than the date that it shows now do not
// count, and since this process first asked about a day, the count grows by the days of its monotonic clock and one.
// So after N wrong dates that are stored when it first asks, at most N + 1 days that hold finishes are dropped early:
// the oldest ones, each less than N + 1 days before its time. What was finished under a wrong date in the past is lost
// with that day.
// Thread: owner only (the housekeeping's thread).
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include "tocsin/clock.h"

namespace tocsin {

// A day of history of one final status, old by the database's clock.
struct PastDay {
  std::chrono::sys_days day;
  int keep = 0;             // whole days for which it is kept (NodeConfig::retain_days)
  bool is_used = true;      // the day holds finishes
  int later_days_used = 0;  // number of later days, up to today, that hold finishes, of any final status
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
  //  - More than `keep` later days hold finishes, of those that count. Today counts, and so may a wrong date.
  //  - `keep` days have passed since the first see(), and the day is before every day seen.
  bool confirms(const PastDay& past, MonoTime now) {
    if (!past.is_used || counting(past, now) > past.keep) return true;
    return first_day_ && past.day < *first_day_ && now - since_ >= std::chrono::days(past.keep);
  }

 private:
  struct Asked {
    int later_days_used = 0;
    MonoTime at{};
  };

  // How many of the later days count. One more than days have passed is right: today may have got its first finish.
  int counting(const PastDay& past, MonoTime now) {
    const Asked& first = first_asked_.try_emplace(past.day, Asked{past.later_days_used, now}).first->second;
    const auto passed = std::chrono::floor<std::chrono::days>(now - first.at);
    return std::min(past.later_days_used, first.later_days_used + 1 + static_cast<int>(passed.count()));
  }

  std::map<std::chrono::sys_days, Asked> first_asked_;  // what confirms() was told first about each day
  std::optional<std::chrono::sys_days> first_day_;      // the earliest seen
  MonoTime since_{};                                    // when the first was seen
};

}  // namespace tocsin
