// Converts times and arrays to and from PostgreSQL's text format.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tocsin/job.h"

namespace tocsin {

// '2026-03-01 12:00:00.250000+00'; '-infinity' for WallTime::min(), 'infinity' for WallTime::max().
std::string to_pg(WallTime time);
// Reads a timestamptz of a session whose timezone is UTC and datestyle is ISO. Throws std::range_error for a time
// outside of the years 1 to 9999.
WallTime wall_time_from_pg(std::string_view text);

// Builds an array literal: {1,2,"quoted text",NULL}. Thread: owner only.
class PgArray {
 public:
  void reserve(std::size_t bytes) { text_.reserve(bytes); }
  void add(std::int64_t value);
  void add(WallTime value);
  void add_text(std::string_view value);
  void add_null();
  template <class T>
  void add(const std::optional<T>& value) {
    if (value) {
      add(*value);
    } else {
      add_null();
    }
  }
  // May be called several times: a read is repeated when its connection was lost.
  std::string literal() const { return text_ + "}"; }

 private:
  void comma();
  std::string text_ = "{";
};

// Reads an array of integers without NULL: {1,2,3}
template <class T>
std::vector<T> numbers_from_array(std::string_view text) {
  std::vector<T> numbers;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data() + 1; at < end; ++at) {
    T number = 0;
    const auto [rest, error] = std::from_chars(at, end, number);
    if (error != std::errc()) break;
    numbers.push_back(number);
    at = rest;
  }
  return numbers;
}

}  // namespace tocsin
