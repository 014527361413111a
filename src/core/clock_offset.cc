#include "core/clock_offset.h"

#include <algorithm>

namespace tocsin {

bool ClockOffset::sample(MonoTime asked, MonoTime answered, WallTime database) {
  const Duration low = database.time_since_epoch() - answered.time_since_epoch();
  const Duration high = database.time_since_epoch() - asked.time_since_epoch();
  const bool agrees = n_ == 0 || high >= low_;
  if (!agrees) n_ = 0;
  bounds_[n_ % kKept] = {low, answered};
  ++n_;
  low_ = low;
  for (std::size_t i = 0; i < std::min(n_, kKept); ++i) {
    const auto age = static_cast<double>((answered - bounds_[i].at).count());
    low_ = std::max(low_, bounds_[i].low - Duration(static_cast<std::int64_t>(age * kDrift)));
  }
  uncertainty_ = high - low_;
  return agrees;
}

}  // namespace tocsin
