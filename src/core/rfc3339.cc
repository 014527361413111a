#include "core/rfc3339.h"

#include <algorithm>

namespace tocsin {

void append_rfc3339(std::string& out, WallTime time) {
  using namespace std::chrono;
  constexpr WallTime kFirst = sys_days(year(0) / 1 / 1), kEnd = sys_days(year(10'000) / 1 / 1);
  time = std::clamp(time, kFirst, kEnd - Duration(1));
  const auto day = floor<days>(time);
  const year_month_day date(day);
  std::int64_t rest = (time - day).count();
  char text[] = "0000-00-00T00:00:00.000000Z";
  const auto put = [&text](int at, int n, std::int64_t value) {
    for (int i = at + n - 1; i >= at; --i, value /= 10) text[i] = static_cast<char>('0' + value % 10);
  };
  put(0, 4, static_cast<int>(date.year()));
  put(5, 2, static_cast<unsigned>(date.month()));
  put(8, 2, static_cast<unsigned>(date.day()));
  put(20, 6, rest % 1'000'000);
  rest /= 1'000'000;
  put(17, 2, rest % 60);
  put(14, 2, rest / 60 % 60);
  put(11, 2, rest / 3600);
  out.append(text, sizeof text - 1);
}

std::string rfc3339(WallTime time) {
  std::string text;
  append_rfc3339(text, time);
  return text;
}

}  // namespace tocsin
