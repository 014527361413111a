// Reads the Retry-After header of HTTP.
#pragma once

#include <optional>
#include <string>

#include "tocsin/clock.h"

namespace tocsin {

// Longer values are cut: a receiver that answers with a year by mistake delays its jobs by a day at most.
inline constexpr Duration kLongestRetryAfter = std::chrono::hours(24);

// How long to wait from `now` on, at most kLongestRetryAfter. The header holds seconds, or a date in one of the three
// forms of HTTP. nullopt: it is empty, cannot be read, or asks for no wait; the type's back-off then decides.
std::optional<Duration> read_retry_after(const std::string& text, WallTime now);

}  // namespace tocsin
