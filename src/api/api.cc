#include "api/api.h"

#include "api/dashboard.h"
#include "api/openapi.h"
#include "api/resources.h"
#include "api/shared_answers.h"

namespace tocsin {
namespace {

// Answers of /v1/me depend on the caller.
bool is_shareable(const Route& route) {
  return route.method == "GET" && route.path.starts_with("/v1/") && route.path != "/v1/me";
}

// All routes of the API. A new resource is one file and one line here.
std::vector<Route> all_routes(ApiContext& context, const std::string& version) {
  std::vector<Route> routes;
  const SharedAnswers shared;
  for (auto make : {job_create_routes, job_batch_routes, job_cancel_routes, job_change_routes, job_read_routes,
                    explain_routes, type_routes, lease_routes, lease_report_routes, bulk_routes, cluster_routes,
                    operation_routes, report_routes, overview_routes}) {
    for (Route& route : make(context)) {
      if (is_shareable(route)) route.handler = shared.share(std::move(route.handler));
      routes.push_back(std::move(route));
    }
  }
  const auto document = std::make_shared<std::string>();
  routes.push_back({.method = "GET",
                    .path = "/openapi.json",
                    .access = Access::read,
                    .operation_id = "openapi",
                    .tag = "Operations",
                    .summary = "This description",
                    .replies = {{200, "OpenApi"}},
                    .handler = [document](const CallPtr& call) { call->reply(200, *document); }});
  *document = openapi_text(routes, version);
  return routes;
}

}  // namespace

struct Api::Impl {
  Impl(Backend& backend, ApiConfig config)
      : context(backend, config.max_attribute_bytes),
        router(all_routes(context, config.version), Gate(std::move(config.tokens)),
               [&backend](AuditEntry entry) { backend.record(std::move(entry)); }),
        dashboard(router),
        server(config.has_dashboard ? static_cast<HttpApp&>(dashboard) : router, std::move(config.http)) {
    router.on_answer = std::move(config.on_answer);
  }
  ApiContext context;
  Router router;
  Dashboard dashboard;
  HttpServer server;
};

Api::Api(Backend& backend, ApiConfig config) : impl_(std::make_unique<Impl>(backend, std::move(config))) {}
Api::~Api() = default;

Status Api::bind() { return impl_->server.bind(); }
Status Api::start() { return impl_->server.start(); }
int Api::port() const { return impl_->server.port(); }
void Api::stop(std::chrono::milliseconds grace) { impl_->server.stop(grace); }
Router& Api::router() { return impl_->router; }

}  // namespace tocsin
