// Converts times and arrays to and from PostgreSQL's text format, for parameters and results of statements. Used by the
// stores of src/postgres. Thread: any.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tocsin/job.h"

namespace tocsin {

// A timestamptz such as 2026-03-01 12:00:00.250000+00; -infinity for WallTime::min(), infinity for WallTime::max().
// REQUIRES: any other time lies in the years 1 to 9999.
std::string to_pg(WallTime time);
// The reverse of to_pg(). REQUIRES: the session's timezone is UTC and its datestyle is ISO. Throws std::range_error for
// other text, such as a time outside of the years 1 to 9999, which another program may have written.
WallTime wall_time_from_pg(std::string_view text);

// Builds the literal of an array, such as {1,2,NULL} or {"a","say \"b\"",NULL}, for one parameter of a statement. All
// elements are of one type; each add appends one. Thread: owner only.
class PgArray {
 public:
  void reserve(std::size_t bytes) { text_.reserve(bytes); }
  void add(std::int64_t value);
  void add(WallTime value);
  void add_text(std::string_view value);  // quotes and escapes it; REQUIRES: no NUL
  void add_null();
  template <class T>
  void add(const std::optional<T>& value) {
    if (value) {
      add(*value);
    } else {
      add_null();
    }
  }
  // The array so far. May be called again, because a session repeats a read whose connection was lost.
  std::string literal() const { return text_ + "}"; }

 private:
  void comma();
  std::string text_ = "{";
};

// Reads an array of integers, such as {1,2,3}. REQUIRES: no element is NULL or too large for T; otherwise the result
// ends before that element, without an error.
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
