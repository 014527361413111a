#include "core/retry_policy.h"

#include <algorithm>
#include <cmath>

namespace tocsin {

Duration backoff_delay(const Backoff& policy, int attempt, Random& random) {
  attempt = std::max(attempt, 1);
  double delay_us = 0;
  if (!policy.delays.empty()) {
    const auto index = std::min(static_cast<std::size_t>(attempt - 1), policy.delays.size() - 1);
    delay_us = static_cast<double>(policy.delays[index].count());
  } else {
    const double grown = static_cast<double>(policy.base.count()) * std::pow(policy.factor, attempt - 1);
    // In this order, so that growth which is no number (zero times infinity) ends at the maximum.
    delay_us = std::min(static_cast<double>(policy.max.count()), grown);
    delay_us *= 1 + policy.jitter * (2 * random.unit() - 1);
  }
  // The comparison is written so that a NaN ends in the longest delay, never in none.
  if (!(delay_us < static_cast<double>(kLongestBackoff.count()))) return kLongestBackoff;
  return Duration(static_cast<std::int64_t>(std::max(delay_us, 0.0)));
}

}  // namespace tocsin
