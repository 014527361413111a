// The back-off: how long to wait before the next attempt of a job.
#pragma once

#include "base/random.h"
#include "ports/biz_type.h"

namespace tocsin {

inline constexpr Duration kLongestBackoff = std::chrono::hours(24 * 365);

// Delay after the failed attempt number `attempt` (1..). Never negative, at most kLongestBackoff, saturating: any
// attempt number and any policy gives a value. Exponential growth with a cap and jitter as in "Exponential Backoff And
// Jitter" (M. Brooker, AWS, 2015), with jitter as a share of the delay, so that the smallest delay stays meaningful.
Duration backoff_delay(const Backoff& policy, int attempt, Random& random);

}  // namespace tocsin
