// ApiTest: a test fixture that calls the REST interface (class Api, src/api/api.h) without a socket. The API works on a
// FakeBackend, a node in memory. Thread: the test's.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "api/api.h"
#include "api/router.h"
#include "support/fake_backend.h"

namespace tocsin {

using Json = nlohmann::ordered_json;

// A response. `body`: its JSON; null if the content type is not JSON.
struct Answer {
  int status = 0;
  std::string content_type;
  std::string text;
  Json body;
  std::string retry_after, allow;

  // The field at fault, in a problem response (application/problem+json); else empty.
  std::string field() const { return body.is_object() ? body.value("field", std::string()) : ""; }
};

class ApiTest : public testing::Test {
 public:
  explicit ApiTest(int databases = 1) : backend(kDefaultShards, databases) { backend.add_type("order.unpaid"); }

  Answer send(HttpRequest request) {
    const std::string body = std::exchange(request.body, "");
    if (request.host.empty()) request.host = "localhost";
    Admission admission = api.router().admit(request);
    if (admission.refusal) return answer_of(*admission.refusal);
    if (body.size() > admission.body_limit) return answer_of(problem_response({413, "too large"}));
    request.body = body;
    std::optional<HttpResponse> response;
    admission.run(std::move(request), Responder([&](HttpResponse r) { response = std::move(r); }));
    EXPECT_TRUE(response) << "no answer";
    return answer_of(response.value_or(HttpResponse{}));
  }

  Answer call(const std::string& method, const std::string& target, const std::string& body = "") {
    HttpRequest request;
    request.method = method;
    request.target = target;
    request.content_type = body.empty() ? "" : "application/json";
    request.body = body;
    return send(std::move(request));
  }
  Answer get(const std::string& target) { return call("GET", target); }
  Answer post(const std::string& target, const std::string& body = "") { return call("POST", target, body); }

  // Creates a job due in a minute and returns its id. `more`: further fields as JSON, each after a comma.
  std::string make_job(const std::string& biz_id = "o-1", const std::string& more = "") {
    const Answer answer =
        post("/v1/jobs", R"({"biz_type":"order.unpaid","biz_id":")" + biz_id + R"(","delay_ms":60000)" + more + "}");
    EXPECT_EQ(answer.status, 201) << answer.text;
    return answer.body.value("job_id", std::string());
  }

  FakeBackend backend;
  Api api{backend, ApiConfig{}};

 private:
  static Answer answer_of(const HttpResponse& response) {
    Answer answer{response.status, response.content_type, std::string(response.text()), {}, {}, {}};
    if (response.content_type.find("json") != std::string::npos)
      answer.body = Json::parse(response.text(), nullptr, false);
    EXPECT_FALSE(answer.body.is_discarded()) << response.text();
    if (response.status >= 400 && answer.body.contains("title")) {
      EXPECT_EQ(response.content_type, "application/problem+json");
      EXPECT_EQ(answer.body.value("status", 0), response.status);
    }
    for (const auto& [name, value] : response.headers) {
      if (name == "Retry-After") answer.retry_after = value;
      if (name == "Allow") answer.allow = value;
    }
    return answer;
  }
};

}  // namespace tocsin
