// Every resource of the API: one function that returns its routes with their handlers, in a file of its own.
// REQUIRES: `context` outlives the routes.
#pragma once

#include <vector>

#include "api/context.h"

namespace tocsin {

std::vector<Route> job_create_routes(ApiContext& context);
std::vector<Route> job_read_routes(ApiContext& context);
std::vector<Route> job_change_routes(ApiContext& context);
std::vector<Route> explain_routes(ApiContext& context);
std::vector<Route> type_routes(ApiContext& context);
std::vector<Route> lease_routes(ApiContext& context);
std::vector<Route> lease_report_routes(ApiContext& context);
std::vector<Route> bulk_routes(ApiContext& context);
std::vector<Route> cluster_routes(ApiContext& context);
std::vector<Route> operation_routes(ApiContext& context);
std::vector<Route> report_routes(ApiContext& context);
std::vector<Route> overview_routes(ApiContext& context);

}  // namespace tocsin
