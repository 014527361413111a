// Builds a JSON value from text with the strict rules of JsonDocument. Boost.JSON parses, because it takes a twentieth
// of the time of nlohmann's parser.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "api/problem.h"

namespace tocsin {

// What JsonDocument refuses, or nothing when `root` is the value of `text`. The value of a field named `verbatim` is
// not taken apart but kept as text (a string in the built value), so that the caller's numbers stay as written.
//
// With `list`, the name of a list in the outermost object, a mistake inside one of its items is not the whole text's:
// it goes to `item_problems` by the item's index (the first of each item), and the item's value means nothing. Text
// that is not JSON, too many values, and an exponent that no parser takes stay mistakes of the whole.
struct JsonItems {
  std::string_view list;
  std::map<std::size_t, Problem> problems;
};
std::optional<Problem> build_json(std::string_view text, std::string_view verbatim, nlohmann::json& root,
                                  JsonItems* items = nullptr);

}  // namespace tocsin
