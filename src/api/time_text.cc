#include "api/time_text.h"

namespace tocsin {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr WallTime kFirstTime = std::chrono::sys_days(std::chrono::year(0) / 1 / 1);
constexpr WallTime kEndOfTime = std::chrono::sys_days(std::chrono::year(10'000) / 1 / 1);

// Takes one piece after the other off the front of the text; after the first mismatch every further call fails, too.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}

  int digits(std::size_t n) {
    if (rest_.size() < n) return miss();
    int value = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (rest_[i] < '0' || rest_[i] > '9') return miss();
      value = value * 10 + (rest_[i] - '0');
    }
    rest_.remove_prefix(n);
    return value;
  }

  // The character that was there, one of `allowed`.
  char one_of(std::string_view allowed) {
    if (rest_.empty() || allowed.find(rest_[0]) == allowed.npos) return static_cast<char>(miss());
    const char c = rest_[0];
    rest_.remove_prefix(1);
    return c;
  }

  // 1..9 digits after the point, in microseconds, rounded up.
  Duration fraction(bool* is_rounded) {
    std::size_t n = 0;
    while (n < rest_.size() && rest_[n] >= '0' && rest_[n] <= '9') ++n;
    if (n < 1 || n > 9) return Duration(miss());
    std::int64_t nanos = digits(n);
    for (std::size_t i = n; i < 9; ++i) nanos *= 10;
    if (is_rounded != nullptr) *is_rounded = nanos % 1000 != 0;
    return Duration((nanos + 999) / 1000);
  }

  bool next_is(char c) const { return !rest_.empty() && rest_[0] == c; }
  bool at_end() const { return !is_missed_ && rest_.empty(); }

 private:
  int miss() {
    is_missed_ = true;
    rest_ = {};
    return 0;
  }

  std::string_view rest_;
  bool is_missed_ = false;
};

}  // namespace

std::optional<WallTime> time_from_text(std::string_view text, bool* is_rounded) {
  Cursor in(text);
  const int year = in.digits(4);
  in.one_of("-");
  const auto month = static_cast<unsigned>(in.digits(2));
  in.one_of("-");
  const auto day = static_cast<unsigned>(in.digits(2));
  in.one_of("Tt");
  const int hour = in.digits(2);
  in.one_of(":");
  const int minute = in.digits(2);
  in.one_of(":");
  const int second = in.digits(2);
  Duration fraction{0};
  if (in.next_is('.')) {
    in.one_of(".");
    fraction = in.fraction(is_rounded);
  }
  minutes offset{0};
  if (const char sign = in.one_of("Zz+-"); sign == '+' || sign == '-') {
    const int offset_hours = in.digits(2);
    in.one_of(":");
    const int offset_minutes = in.digits(2);
    if (offset_hours > 23 || offset_minutes > 59) return {};
    offset = hours(offset_hours) + minutes(offset_minutes);
    if (sign == '-') offset = -offset;
  }
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month), std::chrono::day(day)};
  if (!in.at_end() || !date.ok() || hour > 23 || minute > 59 || second > 59) return {};
  const WallTime time =
      std::chrono::sys_days(date) + hours(hour) + minutes(minute) + seconds(second) + fraction - offset;
  // Offset and rounding may lead out of the years that can be written.
  if (time < kFirstTime || time >= kEndOfTime) return {};
  return time;
}

}  // namespace tocsin
