// Writes the published description of the API (OpenAPI 3.1) from the table of routes (router.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/router.h"

namespace tocsin {

// The whole document as JSON text. `version`: of the program.
std::string openapi_text(const std::vector<Route>& routes, std::string_view version);

// The schemas that routes name, as members of one JSON object (without its braces).
std::string_view openapi_schemas();

}  // namespace tocsin
