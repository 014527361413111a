// Reads the Retry-After header of HTTP.
#pragma once

#include <optional>
#include <string>

#include "tocsin/clock.h"

namespace tocsin {

// Longer values are cut: a receiver that answers with a year by mistake delays its jobs by a day at most.
inline constexpr Duration kLongestRetryAfter = std::chrono::hours(24);

// How long to wait from `now` on: seconds or a date, in any of the three forms that HTTP knows. nullopt: there is none,
// it cannot be read, or it asks for no wait; the type's back-off then decides.
std::optional<Duration> read_retry_after(const std::string& text, WallTime now);

}  // namespace tocsin
