// Reads the HTTP header Retry-After: the receiver of a webhook that answers 429 or 503 says with it how long the next
// attempt should wait. Called by WebhookKind. Thread: any.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "tocsin/clock.h"

namespace tocsin {

// Longer waits are cut to this: a receiver that answers with a year by mistake delays its jobs by a day.
inline constexpr Duration kLongestRetryAfter = std::chrono::hours(24);

// The shortest wait that the receiver asks for, counted from `now`: above 0, at most kLongestRetryAfter. (The back-off
// of the job's type applies as well; the longer one counts.) `text`: the value of the header: whole seconds, or a date
// in one of the three forms of HTTP; empty: no header. nullopt: it is empty, cannot be read, or asks for no wait.
std::optional<Duration> read_retry_after(const std::string& text, WallTime now);

}  // namespace tocsin
