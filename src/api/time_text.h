// Parses times of requests, and writes durations for JSON; core/rfc3339.h writes times, core/duration_text.h sentences.
// Thread: any.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tocsin/clock.h"

namespace tocsin {

// RFC 3339 with an offset, years 0000..9999: "2026-03-01T12:00:00.250+01:00". Parts of a microsecond are rounded up, so
// that nothing fires before the time that was asked for. nullopt: not such a time (second 60 is not, nor are more than
// nine digits of a second). `is_rounded`: set to whether it was rounded if the text has a fraction of a second, else
// unchanged: initialise it with false.
std::optional<WallTime> time_from_text(std::string_view text, bool* is_rounded = nullptr);

inline double to_ms(Duration length) { return static_cast<double>(length.count()) / 1000; }

}  // namespace tocsin
