// Parses and writes durations of the command line: 500ms, 15s, 15m, 24h, 7d, 1h30m. Thread: any.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace tocsin {

// The sum of one or more whole numbers, each with a unit (ms, s, m, h, d). nullopt: any other text, or more than 100
// years.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

// `ms`: milliseconds. Below a minute one number with a fraction: "12.3ms", "4.2s"; otherwise the two largest units:
// "14m 59s", "3d 4h".
std::string format_duration(double ms);

}  // namespace tocsin
