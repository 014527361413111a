#include "cli/duration.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>

namespace tocsin {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t ms;
};
// Largest first.
constexpr std::array kUnits = {Unit{"d", 86'400'000}, Unit{"h", 3'600'000}, Unit{"m", 60'000}, Unit{"s", 1'000},
                               Unit{"ms", 1}};
constexpr std::int64_t kLongest = 36'525LL * 86'400'000;

std::string decimal(double value, const char* unit) {
  const bool is_short = value >= 100 || value == std::floor(value);
  char text[32];
  std::snprintf(text, sizeof text, is_short ? "%.0f%s" : "%.1f%s", value, unit);
  return text;
}

}  // namespace

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::int64_t total = 0;
  while (!text.empty()) {
    if (text.front() < '0' || text.front() > '9') return std::nullopt;  // from_chars would take a sign
    std::int64_t number = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
    const std::string_view name = text.substr(0, text.find_first_of("0123456789"));
    text.remove_prefix(name.size());
    std::int64_t unit = 0;
    for (const Unit& u : kUnits)
      if (u.name == name) unit = u.ms;
    if (unit == 0 || number > kLongest / unit) return std::nullopt;
    total += number * unit;
    if (total > kLongest) return std::nullopt;
  }
  return std::chrono::milliseconds(total);
}

std::string format_duration(double ms) {
  if (ms < 0) return "-" + format_duration(-ms);
  if (ms < 1'000) return decimal(ms, "ms");
  if (ms < 60'000) return decimal(ms / 1000, "s");
  auto rest = static_cast<std::int64_t>(ms);
  std::string text;
  for (std::size_t i = 0, shown = 0; i < kUnits.size() - 1 && shown < 2; ++i) {
    const std::int64_t n = rest / kUnits[i].ms;
    rest %= kUnits[i].ms;
    if (n == 0 && shown == 0) continue;
    if (n > 0) text += (shown == 0 ? "" : " ") + std::to_string(n) + std::string(kUnits[i].name);
    ++shown;
  }
  return text;
}

}  // namespace tocsin
