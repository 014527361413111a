// Names of the values of an enumeration, written once and read in both directions. A table has the names in the order
// of the values, which begin at 0.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace tocsin {

// "?": the value has no name.
template <class Value, std::size_t n>
constexpr const char* name_of(const char* const (&names)[n], Value value) {
  const auto i = static_cast<std::size_t>(value);
  return i < n ? names[i] : "?";
}

// nullopt: no value has this name.
template <class Value, std::size_t n>
constexpr std::optional<Value> value_named(const char* const (&names)[n], std::string_view name) {
  for (std::size_t i = 0; i < n; ++i)
    if (name == names[i]) return static_cast<Value>(i);
  return {};
}

}  // namespace tocsin
