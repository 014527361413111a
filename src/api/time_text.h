// Parses times of requests, and converts durations for JSON. core/rfc3339.h writes times, core/duration_text.h writes
// durations in sentences. Thread: any.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tocsin/clock.h"

namespace tocsin {

// An RFC 3339 time with an offset, years 0000..9999: "2026-03-01T12:00:00.250+01:00". Parts of a microsecond are
// rounded up, so that a job does not fire before the requested time. nullopt: another text, also second 60 or more than
// nine digits of a fraction. `is_rounded`: set only if the text has a fraction of a second: whether it was rounded.
// Initialise it with false.
std::optional<WallTime> time_from_text(std::string_view text, bool* is_rounded = nullptr);

// Milliseconds with a fraction.
inline double to_ms(Duration length) { return static_cast<double>(length.count()) / 1000; }

}  // namespace tocsin
