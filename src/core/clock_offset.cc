#include "core/clock_offset.h"

#include <algorithm>

namespace tocsin {

bool ClockOffset::sample(MonoTime asked, MonoTime answered, WallTime database) {
  const Duration low = database.time_since_epoch() - answered.time_since_epoch();
  const Duration high = database.time_since_epoch() - asked.time_since_epoch();
  const bool agrees = n_ == 0 || high >= low_;
  if (!agrees) n_ = 0;
  lows_[n_ % kKept] = low;
  ++n_;
  low_ = *std::max_element(lows_.begin(), lows_.begin() + static_cast<std::ptrdiff_t>(std::min(n_, kKept)));
  uncertainty_ = high - low_;
  return agrees;
}

}  // namespace tocsin
