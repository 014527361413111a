// The back-off: how long a job waits for its next attempt, after a failed one and after a consumer's nack.
#pragma once

#include "base/random.h"
#include "ports/biz_type.h"

namespace tocsin {

inline constexpr Duration kLongestBackoff = std::chrono::hours(24 * 365);

// Delay after the failed attempt number `attempt` (1..), from 0 to kLongestBackoff; every attempt number and policy
// gives a value. Exponential growth with a cap and jitter as in "Exponential Backoff And Jitter" (M. Brooker, AWS,
// 2015), but the jitter is a share of the delay, so that a small jitter keeps the delay away from zero. A list of
// delays has none.
Duration backoff_delay(const Backoff& policy, int attempt, Random& random);

}  // namespace tocsin
