// TargetUse: whether the lateness target of a type (`slo`: a share of first starts that begin in time) is met, and how
// many misses are left. The REST reports (src/api) compute it. A plain value.
#pragma once

#include <cmath>
#include <cstdint>

namespace tocsin {

// Counts of first starts; missed: began later than the target. `share`: 0 to 1, the part that should be in time.
struct TargetUse {
  std::int64_t started = 0, missed = 0;
  double share = 1;

  // How many starts may miss the target. Rounded, since 100 * (1 - 0.9) is a little below 10 in binary.
  double allowed() const {
    constexpr double kExact = 1e6;
    return std::round(static_cast<double>(started) * (1 - share) * kExact) / kExact;
  }
  bool is_met() const { return static_cast<double>(missed) <= allowed(); }
  // The share of the allowed misses that is left: 1 if there was no miss, below 0 if the target is missed. If no miss
  // is allowed and there was one: 0.
  double budget_left() const {
    if (missed == 0) return 1;
    return allowed() > 0 ? 1 - static_cast<double>(missed) / allowed() : 0;
  }
};

}  // namespace tocsin
