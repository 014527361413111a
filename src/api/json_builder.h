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

// Puts the value of `text` into `root`. Returns the mistake that JsonDocument refuses, or nullopt. The value of a field
// named `verbatim` is not parsed but kept as text (a string in the built value), so the caller's numbers stay as
// written.
//
// With `items`, a mistake inside an item of `list`, an array of the outermost object, does not fail the whole text: the
// first one of each item goes to `problems` by the item's index, and the item's value must not be used. Text that is
// not JSON, too many values, and an exponent that no parser accepts fail the whole text.
struct JsonItems {
  std::string_view list;
  std::map<std::size_t, Problem> problems;
};
std::optional<Problem> build_json(std::string_view text, std::string_view verbatim, nlohmann::json& root,
                                  JsonItems* items = nullptr);

}  // namespace tocsin
