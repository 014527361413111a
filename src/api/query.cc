#include "api/query.h"

#include <algorithm>
#include <charconv>

#include "api/page.h"
#include "api/time_text.h"

namespace tocsin {

std::optional<std::int64_t> number_from(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

std::optional<Problem> read_time(const Call& call, const char* name, std::optional<WallTime>& time) {
  auto text = call.parameter(name);
  if (!text) return {};
  std::ranges::replace(*text, ' ', '+');  // an unencoded "+01:00" arrives as " 01:00"
  time = time_from_text(*text);
  return time ? std::nullopt : std::optional(Problem{400, "Must be an RFC 3339 time with an offset.", name});
}

std::optional<Problem> read_limit(const Call& call, int& limit) {
  const auto text = call.parameter("limit");
  if (!text) return {};
  const auto number = number_from(*text).value_or(0);
  if (number < 1 || number > kMostPerPage) return Problem{400, "Must be 1 to 1000.", "limit"};
  limit = static_cast<int>(number);
  return {};
}

}  // namespace tocsin
