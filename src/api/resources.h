// Every resource of the API: one function that returns its routes with their handlers. Api (api.h) calls each once and
// puts all routes into one table for the Router. REQUIRES: `context` outlives the routes and every call of their
// handlers.
#pragma once

#include <vector>

#include "api/context.h"

namespace tocsin {

std::vector<Route> job_create_routes(ApiContext& context);    // POST /v1/jobs: jobs_create.cc
std::vector<Route> job_batch_routes(ApiContext& context);     // POST /v1/jobs/batch: jobs_create_many.cc
std::vector<Route> job_read_routes(ApiContext& context);      // GET /v1/jobs and one job: jobs_read.cc
std::vector<Route> job_change_routes(ApiContext& context);    // cancel, reschedule, run, retry: jobs_change.cc
std::vector<Route> job_cancel_routes(ApiContext& context);    // POST /v1/jobs/cancel: jobs_cancel_many.cc
std::vector<Route> explain_routes(ApiContext& context);       // why a job has not started: explain.cc
std::vector<Route> type_routes(ApiContext& context);          // /v1/types: types.cc
std::vector<Route> lease_routes(ApiContext& context);         // consumers lease jobs: leases.cc
std::vector<Route> lease_report_routes(ApiContext& context);  // ack, nack, extend: lease_reports.cc
std::vector<Route> bulk_routes(ApiContext& context);          // /v1/bulk: bulk.cc
std::vector<Route> cluster_routes(ApiContext& context);       // nodes, endpoints, shards: cluster.cc
std::vector<Route> operation_routes(ApiContext& context);     // health, readiness, metrics, stats, me: operations.cc
std::vector<Route> report_routes(ApiContext& context);        // /v1/reports: reports.cc
std::vector<Route> overview_routes(ApiContext& context);      // /v1/overview: overview.cc

}  // namespace tocsin
