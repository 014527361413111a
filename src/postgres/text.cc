#include "postgres/text.h"

#include <charconv>
#include <cstdio>
#include <stdexcept>

namespace tocsin {

std::string to_pg(WallTime time) {
  if (time == WallTime::min()) return "-infinity";
  if (time == WallTime::max()) return "infinity";
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  char text[48];
  std::snprintf(text, sizeof text, "%04d-%02u-%02u %02d:%02d:%02d.%06d+00", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return text;
}

namespace {

// Other programs may write to the tables: a time that cannot be read is an error of the call, not a bug.
void check_time(bool is_right, std::string_view text) {
  if (!is_right) throw std::range_error("the time \"" + std::string(text) + "\" is out of range");
}

int digits(std::string_view text, std::size_t at, std::size_t n) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + at + n, value);
  check_time(error == std::errc() && end == text.data() + at + n, text);
  return value;
}

}  // namespace

WallTime wall_time_from_pg(std::string_view text) {
  if (text == "infinity") return WallTime::max();
  if (text == "-infinity") return WallTime::min();
  // 2026-11-21 09:05:35[.123456]+00
  check_time(text.size() >= 22 && text[4] == '-' && text.ends_with("+00"), text);
  using namespace std::chrono;
  const sys_days day{year(digits(text, 0, 4)) / digits(text, 5, 2) / digits(text, 8, 2)};
  Duration rest = hours(digits(text, 11, 2)) + minutes(digits(text, 14, 2)) + seconds(digits(text, 17, 2));
  if (text[19] == '.') {
    const std::size_t n = text.size() - 3 - 20;
    int fraction = digits(text, 20, n);
    for (std::size_t i = n; i < 6; ++i) fraction *= 10;
    rest += microseconds(fraction);
  }
  return day + rest;
}

void PgArray::comma() {
  if (text_.size() > 1) text_ += ',';
}

void PgArray::add(std::int64_t value) {
  comma();
  char digits_text[24];
  const auto end = std::to_chars(digits_text, digits_text + sizeof digits_text, value).ptr;
  text_.append(digits_text, end);
}

void PgArray::add(WallTime value) {
  comma();
  text_ += '"';
  text_ += to_pg(value);
  text_ += '"';
}

void PgArray::add_text(std::string_view value) {
  comma();
  text_ += '"';
  for (char c : value) {
    if (c == '"' || c == '\\') text_ += '\\';
    text_ += c;
  }
  text_ += '"';
}

void PgArray::add_null() {
  comma();
  text_ += "NULL";
}

}  // namespace tocsin
