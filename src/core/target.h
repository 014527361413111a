// The lateness target of a type (`slo`): whether it is met, and how many misses it has left.
#pragma once

#include <cmath>
#include <cstdint>

namespace tocsin {

// Of first starts. `share`: 0 to 1, of those that are to be in time.
struct TargetUse {
  std::int64_t started = 0, missed = 0;
  double share = 1;

  // How many may miss it. Rounded, since 100 * (1 - 0.9) is a little below 10 in binary.
  double allowed() const {
    constexpr double kExact = 1e6;
    return std::round(static_cast<double>(started) * (1 - share) * kExact) / kExact;
  }
  bool is_met() const { return static_cast<double>(missed) <= allowed(); }
  // The share of the allowed misses that is left: 1 when none was used, below 0 when the target is missed; 0 when none
  // is allowed and one was used.
  double budget_left() const {
    if (missed == 0) return 1;
    return allowed() > 0 ? 1 - static_cast<double>(missed) / allowed() : 0;
  }
};

}  // namespace tocsin
