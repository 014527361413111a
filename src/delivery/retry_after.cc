#include "delivery/retry_after.h"

#include <time.h>

#include <algorithm>
#include <charconv>

namespace tocsin {
namespace {

std::optional<WallTime> read_date(const std::string& text) {
  // IMF-fixdate, then the two forms that only old servers send.
  for (const char* format : {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"}) {
    tm parts{};
    const char* const end = strptime(text.c_str(), format, &parts);
    if (end != nullptr && *end == '\0') return WallTime(std::chrono::seconds(timegm(&parts)));
  }
  return {};
}

}  // namespace

std::optional<Duration> read_retry_after(const std::string& text, WallTime now) {
  std::optional<Duration> wait;
  if (!text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; })) {
    std::int64_t seconds = 0;
    const bool is_huge = std::from_chars(text.data(), text.data() + text.size(), seconds).ec != std::errc();
    constexpr auto kMost = std::chrono::duration_cast<std::chrono::seconds>(kLongestRetryAfter);
    wait = is_huge ? kMost : std::min(std::chrono::seconds(seconds), kMost);
  } else if (const auto date = read_date(text)) {
    wait = std::min<Duration>(*date - now, kLongestRetryAfter);
  }
  return wait && *wait > Duration(0) ? wait : std::nullopt;
}

}  // namespace tocsin
