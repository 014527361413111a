// Builds a value from JSON text, refusing on the way what strict JSON does not allow. Boost.JSON parses, for it takes a
// twentieth of the time that nlohmann's parser does.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "api/problem.h"

namespace tocsin {

// What JsonDocument refuses, or nothing when `root` is the value of `text`. The value of a field named `verbatim` is
// not taken apart but kept as text (a string in the built value), so that the caller's numbers stay as written.
std::optional<Problem> build_json(std::string_view text, std::string_view verbatim, nlohmann::json& root);

}  // namespace tocsin
