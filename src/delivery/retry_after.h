// Reads the HTTP header Retry-After, by which the receiver of a webhook that answers 429 or 503 says how long the next
// attempt should wait.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "tocsin/clock.h"

namespace tocsin {

// Longer waits are cut to it: a receiver that answers with a year by mistake delays its jobs by a day.
inline constexpr Duration kLongestRetryAfter = std::chrono::hours(24);

// How long the receiver asks us to wait at least, from `now` on: above 0, at most kLongestRetryAfter. The back-off of
// the job's type may be longer; the longer one counts. `text`: the header's value, empty without one: whole seconds, or
// a date in one of the three forms of HTTP. nullopt: it is empty, cannot be read, or asks for no wait; the back-off
// alone decides. Thread: any.
std::optional<Duration> read_retry_after(const std::string& text, WallTime now);

}  // namespace tocsin
