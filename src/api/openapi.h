// Writes the published description of the API (OpenAPI 3.1) from the table of routes (router.h). Api writes it once,
// when it is made, and serves it as GET /openapi.json.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/router.h"

namespace tocsin {

// The whole document, schemas included, as JSON text. `version`: of the program. REQUIRES: a {part} of a path is
// job_id, bulk_id or name, the only ones that openapi.cc describes.
std::string openapi_text(const std::vector<Route>& routes, std::string_view version);

// openapi_schemas.json: the schemas of request and answer bodies that routes name (Route::request, Reply::schema). A
// test compares them with what the code writes.
std::string_view openapi_schemas();

}  // namespace tocsin
