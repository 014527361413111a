#include <algorithm>
#include <set>

#include "metrics/metrics.h"
#include "support/api_fixture.h"
#include "support/manual_clock.h"

namespace tocsin {
namespace {

using Routes = ApiTest;

TEST_F(Routes, AreExactlyThoseOfThePublishedDescription) {
  const Json document = get("/openapi.json").body;
  EXPECT_EQ(document.at("openapi"), "3.1.0");
  std::set<std::string> published, dispatched, operations;
  for (const auto& [path, methods] : document.at("paths").items()) {
    for (const auto& [method, operation] : methods.items()) published.insert(method + " " + path);
  }
  for (const Route& route : api.router().routes()) {
    std::string method = route.method;
    std::transform(method.begin(), method.end(), method.begin(), [](char c) { return static_cast<char>(c + 32); });
    dispatched.insert(method + " " + route.path);
    EXPECT_TRUE(operations.insert(route.operation_id).second) << route.operation_id;
  }
  EXPECT_EQ(published, dispatched);
  EXPECT_EQ(dispatched.size(), api.router().routes().size());
}

// Every "$ref" anywhere in `node` names a schema of the document.
void expect_refs(const Json& node, const Json& schemas) {
  if (node.is_object() && node.contains("$ref")) {
    const std::string ref = node.at("$ref").get<std::string>();
    ASSERT_TRUE(ref.starts_with("#/components/schemas/"));
    EXPECT_TRUE(schemas.contains(ref.substr(21))) << ref;
  }
  if (node.is_structured()) {
    for (const auto& child : node) expect_refs(child, schemas);
  }
}

TEST_F(Routes, NameOnlySchemasThatExist) {
  const Json document = get("/openapi.json").body;
  expect_refs(document, document.at("components").at("schemas"));
}

// A list that takes a cursor gives one, too: null at the end only.
TEST_F(Routes, DeclareTheCursorOfEveryPagedList) {
  const Json document = get("/openapi.json").body;
  const Json& schemas = document.at("components").at("schemas");
  int paged = 0;
  for (const Route& route : api.router().routes()) {
    if (std::ranges::find(route.query, "cursor", &Parameter::name) == route.query.end()) continue;
    const Json& properties = schemas.at(route.replies.front().schema).at("properties");
    EXPECT_EQ(properties.at("next_cursor").at("type"), Json({"string", "null"})) << route.path;
    ++paged;
  }
  EXPECT_GE(paged, 5);
}

TEST_F(Routes, DescribeEveryStatusTheyPromise) {
  const Json paths = get("/openapi.json").body.at("paths");
  const Json& create = paths.at("/v1/jobs").at("post");
  for (const char* status : {"201", "200", "400", "401", "403", "409", "413", "415", "422", "429", "503"})
    EXPECT_TRUE(create.at("responses").contains(status)) << status;
  EXPECT_EQ(create.at("operationId"), "createJob");
  EXPECT_TRUE(paths.at("/healthz").at("get").at("security").empty());
  EXPECT_EQ(paths.at("/v1/jobs/{job_id}").at("get").at("parameters").at(0).at("name"), "job_id");
}

// The page shows a viewer no buttons; whatever else it may call with its token, nothing changes.
TEST_F(Routes, RefuseEveryWriteOfAViewer) {
  ApiConfig config;
  config.tokens = *Tokens::from_text("[[token]]\nname='v'\nrole='viewer'\ntoken='viewer-0123456789ab'\n");
  Api guarded(backend, std::move(config));
  std::set<std::string> refused;
  const Json document = get("/openapi.json").body;
  for (const auto& [path, methods] : document.at("paths").items()) {
    for (const auto& [method, operation] : methods.items()) {
      HttpRequest request;
      request.method = method;
      std::transform(method.begin(), method.end(), request.method.begin(),
                     [](char c) { return static_cast<char>(c - 32); });
      request.target = path;
      for (std::size_t at; (at = request.target.find('{')) != std::string::npos;)
        request.target.replace(at, request.target.find('}') - at + 1, "1");
      request.authorization = "Bearer viewer-0123456789ab";
      request.content_type = "application/json";
      const Admission admission = guarded.router().admit(request);
      if (request.method == "GET") continue;
      ASSERT_TRUE(admission.refusal) << method << ' ' << path;
      EXPECT_EQ(admission.refusal->status, 403) << method << ' ' << path;
      refused.insert(operation.at("operationId"));
    }
  }
  for (const char* operation : {"createJob", "cancelJob", "putType", "startBulk", "stopBulk", "leaseJobs"})
    EXPECT_TRUE(refused.contains(operation)) << operation;
}

TEST_F(Routes, AnswerEveryPathOfTheContract) {
  for (const char* route : {"POST /v1/jobs",
                            "POST /v1/jobs/batch",
                            "GET /v1/jobs/{job_id}",
                            "GET /v1/jobs",
                            "POST /v1/jobs/{job_id}/cancel",
                            "POST /v1/jobs/cancel",
                            "POST /v1/jobs/{job_id}/reschedule",
                            "POST /v1/jobs/{job_id}/run",
                            "POST /v1/jobs/{job_id}/retry",
                            "POST /v1/jobs/retry",
                            "GET /v1/jobs/{job_id}/explain",
                            "PUT /v1/types/{name}",
                            "GET /v1/types/{name}",
                            "DELETE /v1/types/{name}",
                            "GET /v1/types",
                            "POST /v1/types/{name}/pause",
                            "POST /v1/types/{name}/resume",
                            "GET /healthz",
                            "GET /readyz",
                            "GET /metrics",
                            "GET /v1/stats",
                            "GET /v1/nodes",
                            "GET /v1/shards",
                            "GET /openapi.json"}) {
    const auto& routes = api.router().routes();
    EXPECT_TRUE(std::any_of(routes.begin(), routes.end(), [&](const Route& r) {
      return r.method + " " + r.path == route;
    })) << route;
  }
}

TEST_F(Routes, RecordEveryWriteButThoseOfLeases) {
  int writes = 0;
  for (const Route& route : api.router().routes()) {
    const bool is_write = route.method != "GET";
    EXPECT_EQ(route.audit != Audit::none, is_write && route.access != Access::consume)
        << route.method << ' ' << route.path;
    writes += is_write;
  }
  EXPECT_GE(writes, 15);
}

using Router_ = ApiTest;

TEST_F(Router_, Answers404ForUnknownPaths) {
  for (const char* target : {"/", "/v1", "/v1/jobs/", "/v1/jobs/1/", "/v1/jobs/1/nothing", "/v2/jobs", "/V1/jobs",
                             "//v1/jobs", "/v1/types//pause"})
    EXPECT_EQ(get(target).status, 404) << target;
}

TEST_F(Router_, Answers405WithAllow) {
  const Answer answer = call("PATCH", "/v1/jobs");
  EXPECT_EQ(answer.status, 405);
  EXPECT_NE(answer.allow.find("POST"), std::string::npos);
  EXPECT_NE(answer.allow.find("GET"), std::string::npos);
  EXPECT_NE(answer.allow.find("HEAD"), std::string::npos);
  EXPECT_EQ(post("/healthz").allow, "GET, HEAD");
  EXPECT_EQ(call("TRACE", "/healthz").status, 405);
}

TEST_F(Router_, AnswersHeadWhereGetIs) { EXPECT_EQ(call("HEAD", "/healthz").status, 200); }

TEST_F(Router_, AFixedPathHidesAPatternOfAnotherMethod) {
  EXPECT_EQ(get("/v1/jobs/cancel").status, 405) << "it is no job_id";
  EXPECT_EQ(get("/v1/jobs/cancel").allow, "POST");
  EXPECT_EQ(get("/v1/jobs/cancelled").field(), "job_id");
}

TEST_F(Router_, RefusesBadTargets) {
  EXPECT_EQ(get("/v1/jobs/%zz").status, 400);
  EXPECT_EQ(get("/v1/jobs/%ff").status, 400);
  EXPECT_EQ(get("/v1/jobs?status=%00").status, 400);
}

TEST_F(Router_, RefusesUnknownAndRepeatedParameters) {
  EXPECT_EQ(get("/v1/jobs?limt=5").field(), "limt");
  EXPECT_EQ(get("/v1/jobs?limit=5&limit=6").field(), "limit");
  EXPECT_EQ(get("/healthz?x=1").status, 400);
}

TEST_F(Router_, RequiresJson) {
  HttpRequest request;
  request.method = "POST";
  request.target = "/v1/jobs";
  request.body = "{}";
  for (const char* type : {"", "text/plain", "application/x-www-form-urlencoded", "application/jsonx",
                           "multipart/form-data; boundary=x"}) {
    request.content_type = type;
    EXPECT_EQ(send(request).status, 415) << type;
  }
  for (const char* type : {"application/json", "Application/JSON; charset=utf-8", "application/json ;charset=utf-8"}) {
    request.content_type = type;
    EXPECT_EQ(send(request).status, 400) << type;  // JSON, but not a job
  }
}

TEST_F(Router_, AcceptsAnEmptyObjectWhereNoBodyIsExpected) {
  const std::string id = make_job();
  EXPECT_EQ(post("/v1/jobs/" + id + "/run", R"({"x":1})").field(), "x");
  EXPECT_EQ(post("/v1/jobs/" + id + "/run", "[]").status, 400);
  EXPECT_EQ(post("/v1/jobs/" + id + "/run", std::string(2000, ' ')).status, 413);
  EXPECT_EQ(post("/v1/jobs/" + id + "/run", "{}").status, 200);
}

// A series for every path that somebody tries would fill the memory of whoever collects the metrics.
TEST_F(Router_, UnknownPathsAreOneRouteOfTheMetrics) {
  ManualClock clock;
  Metrics metrics(clock);
  ApiConfig config;
  config.on_answer = [&](const std::string& route, int status) { metrics.answered(route, status); };
  Api measured(backend, std::move(config));
  for (int i = 0; i < 50; ++i) {
    for (const char* path : {"/", "/v2/jobs/", "/v1/jobs/1/", "/v1/jobs/", "/v1/types/"}) {
      HttpRequest request;
      request.method = i % 2 == 0 ? "GET" : "BREW";
      request.host = "localhost";
      request.target = path + std::to_string(1000 + i);
      const Admission admission = measured.router().admit(request);
      measured.router().answered(admission.route, admission.refusal ? admission.refusal->status : 200);
    }
  }
  std::set<std::string> routes;
  const std::string text = metrics.text(), label = "route=\"";
  for (auto at = text.find(label); at != std::string::npos; at = text.find(label, at + 1))
    routes.insert(text.substr(at + label.size(), text.find('"', at + label.size()) - at - label.size()));
  EXPECT_EQ(routes, (std::set<std::string>{"none", "/v1/jobs/{job_id}", "/v1/types/{name}"}));
}

TEST_F(Router_, ChecksTheTokenBeforeItReadsTheBody) {
  HttpRequest request;
  request.method = "POST";
  request.target = "/v1/jobs/batch";
  request.host = "evil.example";
  const Admission admission = api.router().admit(request);
  ASSERT_TRUE(admission.refusal);
  EXPECT_EQ(admission.refusal->status, 403);
}

TEST(Responder, SendsTheFirstAnswerOnly) {
  std::vector<int> answers;
  {
    const Responder respond([&](const HttpResponse& r) { answers.push_back(r.status); });
    const Responder copy = respond;
    copy({204, "", "", {}});
    respond({500, "", "", {}});
  }
  EXPECT_EQ(answers, (std::vector<int>{204}));
}

TEST(Responder, AnswersWhenItIsDestroyedUnused) {
  int status = 0;
  {
    const Responder respond([&](const HttpResponse& r) { status = r.status; });
  }
  EXPECT_EQ(status, 500);
}

TEST(Router, AnswersAnExceptionWith500AndNoDetails) {
  std::vector<Route> routes;
  routes.push_back({.method = "GET",
                    .path = "/x",
                    .access = Access::open,
                    .operation_id = "x",
                    .tag = "",
                    .summary = "",
                    .handler = [](const CallPtr&) { throw std::runtime_error("password=hunter2"); }});
  Router router(std::move(routes), Gate{Tokens()});
  HttpRequest request;
  request.method = "GET";
  request.target = "/x";
  HttpResponse response;
  router.admit(request).run(request, Responder([&](HttpResponse r) { response = std::move(r); }));
  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(response.body.find("hunter2"), std::string::npos);
}

}  // namespace
}  // namespace tocsin
