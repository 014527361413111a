// Builds a JSON value (of nlohmann/json) from text with the strict rules of JsonDocument (json.h). Boost.JSON parses,
// because it is many times faster than nlohmann's own parser.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "api/problem.h"

namespace tocsin {

// Lets each item of an array have mistakes of its own.
struct JsonItems {
  std::string_view list;                    // name of the array, a field of the outermost object
  std::map<std::size_t, Problem> problems;  // the first mistake inside an item, by the item's index
};

// Puts the value of `text` into `root`. Returns the first mistake (with `items`: the first outside of them), or
// nullopt. The value of a field named `verbatim`, at any depth, is not built but kept as its text (a string in the
// built value), so the caller's numbers stay as written.
//
// With `items`, a mistake inside an item does not fail the whole text, but the value of that item must not be used.
// Text that is not JSON and too many values fail the whole text. Exponents of over four digits are shortened and the
// text is parsed again; byte offsets of mistakes then refer to the shortened text.
std::optional<Problem> build_json(std::string_view text, std::string_view verbatim, nlohmann::json& root,
                                  JsonItems* items = nullptr);

}  // namespace tocsin
