#include "support/api_fixture.h"

namespace tocsin {
namespace {

using Types = ApiTest;

TEST_F(Types, PutFillsInDefaults) {
  const Answer answer = call("PUT", "/v1/types/ticket.idle", R"({"handler":{"kind":"noop"}})");
  ASSERT_EQ(answer.status, 201) << answer.text;
  EXPECT_EQ(answer.body.at("name"), "ticket.idle");
  EXPECT_EQ(answer.body.at("ttr_ms"), 30000);
  EXPECT_EQ(answer.body.at("max_attempts"), 16);
  EXPECT_EQ(answer.body.at("backoff"), Json::parse(R"({"base_ms":1000,"factor":2.0,"max_ms":3600000,"jitter":0.2})"));
  EXPECT_EQ(answer.body.at("catch_up"), Json::parse(R"({"drop_older_than_ms":null,"rate_per_s":null})"));
  EXPECT_EQ(answer.body.at("max_running"), nullptr);
  EXPECT_EQ(answer.body.at("paused"), false);
  EXPECT_EQ(call("PUT", "/v1/types/ticket.idle", R"({"handler":{"kind":"noop"},"ttr_ms":5000})").status, 200);
  EXPECT_EQ(get("/v1/types/ticket.idle").body.at("ttr_ms"), 5000);
  EXPECT_EQ(post("/v1/jobs", R"({"biz_type":"ticket.idle","biz_id":"a","delay_ms":1})").status, 201);
}

TEST_F(Types, PutKeepsEverySetting) {
  const std::string body =
      R"({"handler":{"kind":"noop"},"ttr_ms":1000,"max_attempts":3,"backoff":{"delays_ms":[0,1000,60000]},"max_running":7,"rate_per_s":2.5,)"
      R"("catch_up":{"drop_older_than_ms":86400000,"rate_per_s":100},"slo":{"lateness_ms":1000,"share":0.999}})";
  ASSERT_EQ(call("PUT", "/v1/types/a", body).status, 201);
  const Json type = get("/v1/types/a").body;
  const Json wanted = Json::parse(body);
  for (const auto& [name, value] : wanted.items()) EXPECT_EQ(type.at(name), value) << name;
}

TEST_F(Types, TheAnswerOfGetMayBePutBack) {
  ASSERT_EQ(
      call("PUT", "/v1/types/a",
           R"({"handler":{"kind":"webhook","url":"http://x/","secret":"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}})")
          .status,
      201);
  post("/v1/types/a/pause");
  const Answer shown = get("/v1/types/a");
  EXPECT_EQ(shown.body.at("handler").at("secret"), "whsec_***");
  EXPECT_EQ(shown.text.find("MfKQ"), std::string::npos);
  EXPECT_EQ(get("/v1/types").text.find("MfKQ"), std::string::npos);
  const Answer back = call("PUT", "/v1/types/a", shown.text);
  EXPECT_EQ(back.status, 200) << back.text;
  EXPECT_EQ(back.text.find("MfKQ"), std::string::npos);
  EXPECT_NE(backend.database.list_types()[0].handler_json.find("whsec_MfKQ"), std::string::npos);
  EXPECT_EQ(get("/v1/types/a").body.at("paused"), true);
}

TEST_F(Types, APutWithIfMatchReplacesOnlyThatVersion) {
  const auto put = [&](const std::string& version, int attempts) {
    HttpRequest request;
    request.method = "PUT";
    request.target = "/v1/types/a";
    request.content_type = "application/json";
    request.if_match = version;
    request.body = R"({"handler":{"kind":"noop"},"max_attempts":)" + std::to_string(attempts) + "}";
    return send(std::move(request)).status;
  };
  EXPECT_EQ(put("*", 2), 412) << "there is none";
  EXPECT_EQ(put("", 2), 201);
  const std::string first = '"' + get("/v1/types/a").body.at("gmt_modified").get<std::string>() + '"';
  EXPECT_EQ(put(first, 3), 200);
  EXPECT_EQ(put(first, 4), 412);
  EXPECT_EQ(put("\"nonsense\"", 4), 412);
  const std::string second = '"' + get("/v1/types/a").body.at("gmt_modified").get<std::string>() + '"';
  EXPECT_EQ(put("W/" + second, 4), 412) << "a weak tag";
  EXPECT_EQ(get("/v1/types/a").body.at("max_attempts"), 3);
  EXPECT_EQ(put(first + ", " + second, 6), 200) << "a list";
  EXPECT_EQ(put("*", 5), 200);
}

TEST_F(Types, IfMatchIsAppliedOrRefused) {
  const auto send_if = [&](const std::string& method, const std::string& target, const std::string& tag) {
    HttpRequest request;
    request.method = method;
    request.target = target;
    request.if_match = tag;
    return send(std::move(request)).status;
  };
  call("PUT", "/v1/types/a", R"({"handler":{"kind":"noop"}})");
  EXPECT_EQ(send_if("POST", "/v1/types/a/pause", "\"stale\""), 400) << "not ignored";
  EXPECT_EQ(send_if("DELETE", "/v1/types/a", "\"stale\""), 412);
  const std::string tag = '"' + get("/v1/types/a").body.at("gmt_modified").get<std::string>() + '"';
  EXPECT_EQ(send_if("GET", "/v1/types/a", "\"stale\""), 200);
  EXPECT_EQ(send_if("DELETE", "/v1/types/a", tag), 200);
  HttpRequest create_only;
  create_only.method = "PUT";
  create_only.target = "/v1/types/a";
  create_only.if_none_match = "*";
  EXPECT_EQ(send(std::move(create_only)).field(), "If-None-Match") << "not ignored";
}

TEST_F(Types, AHiddenSecretNeedsAStoredOne) {
  EXPECT_EQ(
      call("PUT", "/v1/types/b", R"({"handler":{"kind":"webhook","url":"http://x/","secret":"whsec_***"}})").field(),
      "handler.secret");
}

TEST_F(Types, PasswordsOfBrokersAreNeverShownAndMayBePutBack) {
  const std::pair<std::string, std::string> handlers[] = {
      {R"({"kind":"amqp","url":"amqp://shop:sesame@broker:5672/v","routing_key":"q"})", "handler.url"},
      {R"({"kind":"kafka","bootstrap_servers":"broker:9092","topic":"t","username":"shop","password":"sesame"})",
       "handler.password"},
  };
  for (const auto& [handler, field] : handlers) {
    const std::string body = R"({"handler":)" + handler + "}";
    EXPECT_EQ(call("PUT", "/v1/types/a", body).text.find("sesame"), std::string::npos);
    const std::string shown = get("/v1/types/a").text;
    EXPECT_EQ(shown.find("sesame"), std::string::npos);
    EXPECT_EQ(get("/v1/types").text.find("sesame"), std::string::npos);
    EXPECT_NE(shown.find("***"), std::string::npos);
    EXPECT_EQ(call("PUT", "/v1/types/a", shown).status, 200);
    EXPECT_NE(backend.database.list_types()[0].handler_json.find("sesame"), std::string::npos) << "kept";

    // Nobody sends a password that he was not shown to another host.
    std::string moved = shown;
    moved.replace(moved.find("broker:"), 7, "thief0:");
    EXPECT_EQ(call("PUT", "/v1/types/a", moved).field(), field);
    EXPECT_EQ(call("PUT", "/v1/types/b", R"({"handler":)" + Json::parse(shown)["handler"].dump() + "}").field(), field);
    EXPECT_EQ(call("DELETE", "/v1/types/a").status, 200);
  }
}

TEST_F(Types, HeaderValuesAreShownOnlyToCallersWhoMayWriteThem) {
  ASSERT_EQ(
      call("PUT", "/v1/types/a", R"({"handler":{"kind":"webhook","url":"http://x/","headers":{"X-Key":"sesame"}}})")
          .status,
      201);
  EXPECT_EQ(get("/v1/types/a").body.at("handler").at("headers").at("X-Key"), "sesame") << "no tokens: everybody may";

  ApiConfig config;
  config.tokens = *Tokens::from_text(
      "[[token]]\nname='a'\nrole='admin'\ntoken='admin-0123456789ab'\n"
      "[[token]]\nname='v'\nrole='viewer'\ntoken='viewer-0123456789ab'\n");
  Api guarded(backend, std::move(config));
  const auto ask = [&](const std::string& who, const std::string& method, const std::string& target,
                       const std::string& body = "") {
    HttpRequest request;
    request.method = method;
    request.target = target;
    request.authorization = "Bearer " + who + "-0123456789ab";
    request.content_type = "application/json";
    std::string text;
    Admission admission = guarded.router().admit(request);
    request.body = body;
    admission.run(std::move(request), Responder([&](HttpResponse response) { text = response.body; }));
    return text;
  };
  for (const char* target : {"/v1/types", "/v1/types/a"}) {
    EXPECT_EQ(ask("viewer", "GET", target).find("sesame"), std::string::npos) << target;
    EXPECT_NE(ask("viewer", "GET", target).find(R"("X-Key":"***")"), std::string::npos) << target;
    EXPECT_NE(ask("admin", "GET", target).find("sesame"), std::string::npos) << target;
  }
  const std::string shown = ask("viewer", "GET", "/v1/types/a");
  EXPECT_NE(ask("admin", "PUT", "/v1/types/a", shown).find("sesame"), std::string::npos) << "what is hidden is kept";
  std::string more = shown;
  more.replace(more.find("X-Key"), 5, "X-New");
  EXPECT_EQ(Json::parse(ask("admin", "PUT", "/v1/types/a", more)).at("field"), "handler.headers.X-New");
}

TEST_F(Types, APutNeitherPausesNorResumes) {
  const std::string handler = R"({"handler":{"kind":"noop"},"paused":)";
  EXPECT_EQ(call("PUT", "/v1/types/a", handler + "true}").field(), "paused");
  EXPECT_EQ(get("/v1/types/a").status, 404);
  EXPECT_EQ(call("PUT", "/v1/types/a", handler + "1}").field(), "paused");
  EXPECT_EQ(call("PUT", "/v1/types/a", handler + "false}").status, 201);
  ASSERT_EQ(post("/v1/types/a/pause").status, 200);
  EXPECT_EQ(call("PUT", "/v1/types/a", handler + "false}").field(), "paused");
  EXPECT_EQ(call("PUT", "/v1/types/a", handler + "true}").body.at("paused"), true);
  EXPECT_EQ(call("PUT", "/v1/types/a", R"({"handler":{"kind":"noop"}})").body.at("paused"), true);
}

TEST_F(Types, AHiddenPasswordStaysOnlyForTheSameDestinationAndLogin) {
  const Json stored = {{"kind", "kafka"},
                       {"bootstrap_servers", "broker:9092"},
                       {"topic", "t"},
                       {"security_protocol", "sasl_plaintext"},
                       {"sasl_mechanism", "SCRAM-SHA-512"},
                       {"username", "shop"},
                       {"password", "sesame"}};
  ASSERT_EQ(call("PUT", "/v1/types/a", Json{{"handler", stored}}.dump()).status, 201);
  const auto put = [&](const char* field, const Json& value) {
    Json handler = stored;
    handler["password"] = "***";
    value.is_null() ? handler.erase(field) : (handler[field] = value, 1U);
    return call("PUT", "/v1/types/a", Json{{"handler", handler}}.dump());
  };
  for (const auto& [field, value] : {std::pair<const char*, Json>{"bootstrap_servers", "thief:9092"},
                                     {"security_protocol", "plaintext"},
                                     {"security_protocol", nullptr},
                                     {"sasl_mechanism", "PLAIN"},
                                     {"sasl_mechanism", nullptr},
                                     {"username", "thief"}}) {
    const Answer answer = put(field, value);
    EXPECT_EQ(answer.status, 400) << field;
    EXPECT_EQ(answer.field(), "handler.password") << field;
  }
  EXPECT_EQ(put("topic", "other").status, 200);
  EXPECT_NE(backend.database.list_types()[0].handler_json.find("sesame"), std::string::npos) << "kept";
  const auto amqp = [&](const std::string& password, const std::string& host) {
    return call("PUT", "/v1/types/b",
                R"({"handler":{"kind":"amqp","url":"amqp://shop:)" + password + "@" + host + R"("}})");
  };
  ASSERT_EQ(amqp("sesame", "broker:5672/v").status, 201);
  for (const char* host : {"broker:5673/v", "broker2:5672/v", "broker/v"})
    EXPECT_EQ(amqp("***", host).field(), "handler.url") << host;
  EXPECT_EQ(amqp("***", "broker:5672/other").status, 200) << "the same server";
}

TEST_F(Types, RefuseBadBodies) {
  const std::pair<std::string, const char*> table[] = {
      {R"({})", "handler"},
      {R"({"handler":5})", "handler"},
      {R"({"handler":{}})", "handler.kind"},
      {R"({"handler":{"kind":5}})", "handler.kind"},
      {R"({"handler":{"kind":"noop"},"ttr":5})", "ttr"},
      {R"({"handler":{"kind":"noop"},"ttr_ms":0})", "ttr_ms"},
      {R"({"handler":{"kind":"noop"},"ttr_ms":"5"})", "ttr_ms"},
      {R"({"handler":{"kind":"noop"},"max_attempts":0})", "max_attempts"},
      {R"({"handler":{"kind":"noop"},"max_attempts":1001})", "max_attempts"},
      {R"({"handler":{"kind":"noop"},"max_running":0})", "max_running"},
      {R"({"handler":{"kind":"noop"},"rate_per_s":0})", "rate_per_s"},
      {R"({"handler":{"kind":"noop"},"rate_per_s":-1})", "rate_per_s"},
      {R"({"handler":{"kind":"noop"},"backoff":[]})", "backoff"},
      {R"({"handler":{"kind":"noop"},"backoff":{"delays_ms":[]}})", "backoff.delays_ms"},
      {R"({"handler":{"kind":"noop"},"backoff":{"delays_ms":[1,-1]}})", "backoff.delays_ms[1]"},
      {R"({"handler":{"kind":"noop"},"backoff":{"delays_ms":[1],"base_ms":1}})", "backoff.base_ms"},
      {R"({"handler":{"kind":"noop"},"backoff":{"factor":0.5}})", "backoff.factor"},
      {R"({"handler":{"kind":"noop"},"backoff":{"jitter":1.5}})", "backoff.jitter"},
      {R"({"handler":{"kind":"noop"},"backoff":{"base_ms":100,"max_ms":50}})", "backoff.max_ms"},
      {R"({"handler":{"kind":"noop"},"catch_up":{"drop_older_than_ms":-1}})", "catch_up.drop_older_than_ms"},
      {R"({"handler":{"kind":"noop"},"catch_up":{"x":1}})", "catch_up.x"},
      {R"({"handler":{"kind":"noop"},"slo":{"share":0.9}})", "slo.lateness_ms"},
      {R"({"handler":{"kind":"noop"},"slo":{"lateness_ms":5}})", "slo.share"},
      {R"({"handler":{"kind":"noop"},"slo":{"lateness_ms":-1,"share":0.9}})", "slo.lateness_ms"},
      {R"({"handler":{"kind":"noop"},"slo":{"lateness_ms":1,"share":1.1}})", "slo.share"},
      {R"({"handler":{"kind":"noop"},"slo":{"lateness_ms":1,"share":1,"x":1}})", "slo.x"},
      {R"({"handler":{"kind":"noop"},"name":"other"})", "name"},
      {R"({"handler":{"kind":"webhook","url":"http://x/","timeout_ms":30001}})", "handler.timeout_ms"},
      {R"({"handler":{"kind":"webhook","url":"http://x/","timeout_ms":0}})", "handler.timeout_ms"},
  };
  for (const auto& [body, field] : table) {
    const Answer answer = call("PUT", "/v1/types/t", body);
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_EQ(answer.field(), field) << body;
  }
  EXPECT_EQ(get("/v1/types/t").status, 404);
}

TEST_F(Types, RefuseBadNames) {
  for (const std::string name : {"a%20b", "a%2Fb", "%C3%A9", "a%0Ab", "%3Cscript%3E", ".", "..", "%2E%2E"})
    EXPECT_EQ(call("PUT", "/v1/types/" + name, R"({"handler":{"kind":"noop"}})").field(), "name") << name;
  EXPECT_EQ(call("PUT", "/v1/types/" + std::string(129, 'a'), R"({"handler":{"kind":"noop"}})").status, 400);
  EXPECT_EQ(call("PUT", "/v1/types/" + std::string(128, 'a'), R"({"handler":{"kind":"noop"}})").status, 201);
  EXPECT_EQ(call("PUT", "/v1/types/...", R"({"handler":{"kind":"noop"}})").status, 201);
  EXPECT_EQ(call("PUT", "/v1/types/Aa0_.:-", R"({"handler":{"kind":"noop"}})").status, 201);
}

TEST_F(Types, LetTheHandlersCheckTheirSettings) {
  backend.bad_handler = Error{ErrorCode::invalid, "url must be http or https", "handler.url"};
  const Answer answer = call("PUT", "/v1/types/t", R"({"handler":{"kind":"webhook","url":"ftp://x"}})");
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.field(), "handler.url");
}

TEST_F(Types, ListAndDelete) {
  backend.add_type("a.first");
  const Answer all = get("/v1/types");
  EXPECT_EQ(all.body.at("items").size(), 2u);
  EXPECT_EQ(all.body.at("next_cursor"), nullptr);
  EXPECT_EQ(call("DELETE", "/v1/types/a.first").status, 200);
  EXPECT_EQ(call("DELETE", "/v1/types/a.first").status, 404);
  EXPECT_EQ(get("/v1/types/a.first").status, 404);
  make_job();
  EXPECT_EQ(call("DELETE", "/v1/types/order.unpaid").status, 409);
}

TEST_F(Types, PauseAndResume) {
  EXPECT_EQ(post("/v1/types/order.unpaid/pause").body.at("paused"), true);
  const Answer until = post("/v1/types/order.unpaid/pause", R"({"until":"2026-03-02T00:00:00Z"})");
  EXPECT_EQ(until.body.at("paused_until"), "2026-03-02T00:00:00.000000Z");
  EXPECT_TRUE(backend.types()->find("order.unpaid")->is_paused(backend.time));
  const Answer resumed = post("/v1/types/order.unpaid/resume");
  EXPECT_EQ(resumed.body.at("paused"), false);
  EXPECT_EQ(resumed.body.at("paused_until"), nullptr);
  EXPECT_EQ(post("/v1/types/order.unpaid/pause", R"({"until":"2020-01-01T00:00:00Z"})").field(), "until");
  EXPECT_EQ(post("/v1/types/order.unpaid/pause", R"({"until":"9999-01-01T00:00:00Z"})").field(), "until");
  EXPECT_EQ(post("/v1/types/order.unpaid/pause", R"({"x":1})").field(), "x");
  EXPECT_EQ(post("/v1/types/nope/pause").status, 404);
  EXPECT_EQ(post("/v1/types/nope/resume").status, 404);
}

// ---- operations

using Operations = ApiTest;

TEST_F(Operations, HealthAnswersWithoutADatabase) {
  backend.fails = ErrorCode::unavailable;
  backend.is_full = true;
  EXPECT_EQ(get("/healthz").body, Json::parse(R"({"status":"ok"})"));
}

TEST_F(Operations, ReadinessNamesProblems) {
  EXPECT_EQ(get("/readyz").status, 200);
  backend.state = {false, false, {{"database", "ok"}, {"schema", "version 1, needs 2"}}, {}};
  const Answer answer = get("/readyz");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.body.at("checks").at("schema"), "version 1, needs 2");
}

TEST_F(Operations, ReadinessWithoutATokenShowsOnlyTheStatus) {
  backend.state = {true, true, {{"database a", "system 7, oid 8"}}, {"database a: fsync is off"}};
  ApiConfig config;
  config.tokens = *Tokens::from_text("[[token]]\nname = \"v\"\nrole = \"viewer\"\ntoken = \"0123456789abcdef\"");
  Api guarded_api(backend, std::move(config));
  const auto ready = [](Api& asked, const std::string& authorization, const std::string& host = "localhost") {
    HttpRequest request;
    request.method = "GET";
    request.target = "/readyz";
    request.host = host;
    request.authorization = authorization;
    Admission admission = asked.router().admit(request);
    std::string text;
    admission.run(std::move(request), Responder([&](const HttpResponse& r) { text = r.body; }));
    return text;
  };
  for (const char* stranger : {"", "Bearer wrong-0123456789abcdef"})
    EXPECT_EQ(ready(guarded_api, stranger), R"({"status":"degraded"})");
  EXPECT_NE(ready(guarded_api, "Bearer 0123456789abcdef").find("system 7"), std::string::npos);
  EXPECT_NE(ready(api, "").find("system 7"), std::string::npos) << "on this machine, without tokens";
  EXPECT_EQ(ready(api, "", "rebound.example"), R"({"status":"degraded"})");
}

TEST_F(Operations, MetricsAreText) {
  const Answer answer = get("/metrics");
  EXPECT_EQ(answer.content_type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_NE(answer.text.find("tocsin_up 1"), std::string::npos);
}

TEST_F(Operations, StatsCountByTypeAndStatus) {
  backend.add_type("idle");
  const std::string one = make_job("a");
  make_job("b");
  post("/v1/jobs/" + one + "/cancel");
  backend.time += std::chrono::minutes(2);
  const Json stats = get("/v1/stats").body;
  ASSERT_EQ(stats.at("items").size(), 2u);
  EXPECT_EQ(stats.at("items")[1],
            Json::parse(R"({"biz_type":"order.unpaid","pending":1,"running":0,"done":0,"cancelled":1,"dead":0})"));
  EXPECT_EQ(stats.at("totals"), Json::parse(R"({"pending":1,"running":0,"done":0,"cancelled":1,"dead":0})"));
  EXPECT_EQ(stats.at("lateness_ms"), Json::parse(R"({"n":3,"p50":1.5,"p90":2.5,"p99":3.5,"max":4.5})"));
  EXPECT_EQ(stats.at("backlog"), Json::parse(R"({"overdue":1,"is_capped":false})"));
}

TEST_F(Types, AreListedInPages) {
  for (const char* name : {"b", "a", "c"}) backend.add_type(name);
  const auto names = [](const Answer& answer) {
    std::vector<std::string> found;
    for (const Json& type : answer.body.at("items")) found.push_back(type.at("name"));
    return found;
  };
  EXPECT_EQ(names(get("/v1/types")), (std::vector<std::string>{"a", "b", "c", "order.unpaid"}));
  EXPECT_EQ(get("/v1/types").body.at("next_cursor"), nullptr);
  EXPECT_EQ(get("/v1/types?limit=4").body.at("next_cursor"), nullptr);
  const Answer first = get("/v1/types?limit=3");
  EXPECT_EQ(names(first), (std::vector<std::string>{"a", "b", "c"}));
  const std::string cursor = first.body.at("next_cursor");
  EXPECT_EQ(names(get("/v1/types?limit=3&cursor=" + cursor)), std::vector<std::string>{"order.unpaid"});
  call("DELETE", "/v1/types/c");
  const Answer second = get("/v1/types?limit=3&cursor=" + cursor);
  EXPECT_EQ(names(second), std::vector<std::string>{"order.unpaid"})
      << "though the one that the cursor names is removed";
  EXPECT_EQ(get("/v1/types?limit=0").field(), "limit");
  EXPECT_EQ(get("/v1/types?limit=1001").field(), "limit");
  EXPECT_EQ(get("/v1/types?cursor=nonsense").field(), "cursor");
  EXPECT_EQ(get("/v1/nodes?cursor=" + cursor).field(), "cursor") << "of another list";
}

}  // namespace
}  // namespace tocsin
