// The Retry-After header of HTTP.
#pragma once

#include <optional>
#include <string>

#include "tocsin/clock.h"

namespace tocsin {

// Longer wishes are cut: a receiver that says a year by mistake must not bury its jobs.
inline constexpr Duration kLongestRetryAfter = std::chrono::hours(24);

// How long to wait from `now` on: seconds or a date, in any of the three forms that HTTP knows. Empty: there is none,
// it cannot be read, or it asks for no wait at all, and the backoff of the type decides.
std::optional<Duration> read_retry_after(const std::string& text, WallTime now);

}  // namespace tocsin
