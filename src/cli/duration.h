// Parses and writes durations of the command line: 500ms, 15s, 15m, 24h, 7d, 1h30m.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace tocsin {

// The sum of whole numbers with a unit each (ms, s, m, h, d), not negative; nullopt for anything else and for more than
// 100 years.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

// "12.3ms", "4.2s", "14m 59s", "3d 4h": below a minute with a fraction, else in the two largest units.
std::string format_duration(double ms);

}  // namespace tocsin
