// Writes the published description of the API (OpenAPI 3.1) from the table of routes (router.h). Api (api.h) writes it
// once, when it is constructed, and serves it as GET /openapi.json. Thread: any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/router.h"

namespace tocsin {

// The whole document, schemas included, as JSON text. `version`: of the program. REQUIRES: every {part} in a path of
// `routes` is job_id, bulk_id or name; openapi.cc describes only these.
std::string openapi_text(const std::vector<Route>& routes, std::string_view version);

// The contents of openapi_schemas.json: the schemas of request and answer bodies that routes name (Route::request,
// Reply::schema). A test compares them with what the code writes.
std::string_view openapi_schemas();

}  // namespace tocsin
