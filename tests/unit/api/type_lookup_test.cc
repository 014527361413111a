// What is answered of types that this node has not heard of: never "unknown" unless a fresh read lacks the name.
#include "api/context.h"
#include "support/api_fixture.h"

namespace tocsin {
namespace {

constexpr const char* kNewJobOf = R"({"biz_id":"a","delay_ms":1,"biz_type":")";

class UncachedTypes : public ApiTest {
 protected:
  // As another node does it: the registry has it, this node's snapshot does not.
  void put_elsewhere(const std::string& name, const std::string& kind = "noop") {
    BizType type;
    type.name = name;
    type.handler_kind = kind;
    type.handler_json = R"({"kind":")" + kind + "\"}";
    backend.database.put_type(type, backend.time);
  }
  Answer create(const std::string& type) { return post("/v1/jobs", kNewJobOf + type + "\"}"); }
  int lookups() const { return static_cast<int>(std::ranges::count(backend.verbs, "has_any_type")); }
};

TEST_F(UncachedTypes, AreUnavailableNotUnknownWhileTheRegistryCannotBeRead) {
  for (const ErrorCode code : {ErrorCode::unavailable, ErrorCode::conflict}) {
    backend.fails = code;
    EXPECT_EQ(create("new.type").status, 503);
    EXPECT_EQ(post("/v1/types/new.type/lease", R"({"max":1})").status, 503);
    EXPECT_EQ(get("/v1/jobs?biz_type=new.type").status, 503);
    EXPECT_EQ(post("/v1/jobs/cancel", R"({"biz_id":"a","biz_type":"new.type"})").status, 503);
    EXPECT_EQ(post("/v1/jobs/retry", R"({"biz_type":"new.type"})").status, 503);
    EXPECT_EQ(post("/v1/jobs/batch", std::string(R"({"jobs":[)") + kNewJobOf + R"(new.type"}]})").status, 503);
  }
  backend.fails.reset();
  EXPECT_EQ(create("new.type").status, 422);
  EXPECT_EQ(post("/v1/types/new.type/lease", R"({"max":1})").status, 404);
}

TEST_F(UncachedTypes, OfAJobAreUnavailableWhileTheRegistryCannotBeRead) {
  put_elsewhere("new.type");
  NewJob created;
  created.type_id = backend.database.list_types().front().type_id;
  created.biz_id = "a";
  created.when.in = std::chrono::hours(1);
  const JobId id = backend.database.create({created}, CreateMode::all_or_nothing, backend.time).value().front().job_id;
  const std::string job = "/v1/jobs/" + std::to_string(id);
  backend.silent = {0};
  for (const std::string& path : {job, job + "/explain", std::string("/v1/jobs?status=pending")})
    EXPECT_EQ(get(path).status, 503) << path;
  backend.silent = {};
  EXPECT_EQ(get(job).body["biz_type"], "new.type");
}

TEST_F(UncachedTypes, AreUnavailableAtOnceWhileTheControlDatabaseIsKnownToBeDown) {
  backend.silent = {0};
  EXPECT_EQ(create("new.type").status, 503);
  EXPECT_EQ(backend.posted, 0);
}

TEST_F(UncachedTypes, AreKnownAtOnceBesideNamesThatDoNotExist) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(create("no.such").status, 422);
  put_elsewhere("new.type");
  put_elsewhere("new.pull", "pull");
  EXPECT_EQ(create("new.type").status, 201);
  EXPECT_EQ(create("no.such").status, 422);
  EXPECT_EQ(post("/v1/types/new.pull/lease", R"({"max":1})").status, 200);
}

TEST_F(UncachedTypes, CostALookUpByNameAndNoReadOfTheWholeRegistry) {
  for (int i = 0; i < 5; ++i) create("no.such");
  EXPECT_EQ(backend.reloads, 0);
  EXPECT_EQ(std::ranges::count(backend.verbs, "types"), 0);
}

TEST_F(UncachedTypes, OfManyRequestsAreReadTogether) {
  backend.is_holding = true;
  std::vector<int> statuses;
  for (int i = 0; i < 100; ++i) {
    HttpRequest request;
    request.method = "POST";
    request.target = "/v1/jobs";
    request.host = "localhost";
    request.content_type = "application/json";
    Admission admission = api.router().admit(request);
    request.body = std::string(kNewJobOf) + (i % 2 == 0 ? "no.such" : "new.type") + "\"}";
    admission.run(std::move(request), Responder([&](const HttpResponse& r) { statuses.push_back(r.status); }));
  }
  EXPECT_EQ(backend.posted, 1);
  put_elsewhere("new.type");  // before the read begins
  backend.run_held();
  EXPECT_EQ(lookups(), 1);
  EXPECT_EQ(std::ranges::count(statuses, 201), 50);
  EXPECT_EQ(std::ranges::count(statuses, 422), 50);
}

TEST_F(UncachedTypes, AreReadAgainForRequestsThatArriveDuringARead) {
  const ApiContext context{backend, 65536};
  TypeLookup lookup(context);
  int answers = 0;
  lookup.ask({.names = {"no.such"}}, [&](const std::optional<Problem>& problem) {
    EXPECT_FALSE(problem);
    ++answers;
    if (answers == 1) {
      put_elsewhere("new.type");
      lookup.ask({.names = {"new.type"}}, [&](const std::optional<Problem>&) {
        ++answers;
        EXPECT_NE(backend.types()->find("new.type"), nullptr);
      });
    }
  });
  EXPECT_EQ(answers, 2);
  EXPECT_EQ(lookups(), 2);
}

TEST_F(UncachedTypes, OfAFullQueueAreTooBusy) {
  backend.is_full = true;
  EXPECT_EQ(create("new.type").status, 429);
  backend.is_full = false;
  put_elsewhere("new.type");
  EXPECT_EQ(create("new.type").status, 201);
}

TEST_F(UncachedTypes, OfABatchAreLookedUpOnceEach) {
  put_elsewhere("new.type");
  const std::string items = std::string(kNewJobOf) + R"(new.type"},)" + kNewJobOf + R"(no.such"},)" + kNewJobOf +
                            R"(new.type"},)" + kNewJobOf + R"(order.unpaid"})";
  const Answer partial = post("/v1/jobs/batch?partial=true", R"({"jobs":[)" + items + "]}");
  ASSERT_EQ(partial.status, 201) << partial.text;
  EXPECT_EQ(lookups(), 1);
  EXPECT_EQ(partial.body.at("items")[0].at("created"), true);
  EXPECT_EQ(partial.body.at("items")[1].at("error").at("status"), 422);
  EXPECT_EQ(partial.body.at("items")[1].at("error").at("field"), "jobs[1].biz_type");
  EXPECT_EQ(partial.body.at("items")[3].at("created"), true);
  const Answer whole = post("/v1/jobs/batch", R"({"jobs":[)" + items + "]}");
  EXPECT_EQ(whole.status, 422);
  EXPECT_EQ(whole.field(), "jobs[1].biz_type");
}

TEST_F(UncachedTypes, OfAPartialBatchAreUnavailableItemByItem) {
  backend.silent = {0};
  const Answer partial = post("/v1/jobs/batch?partial=true", std::string(R"({"jobs":[)") + kNewJobOf +
                                                                 R"(new.type"},)" + kNewJobOf + R"(order.unpaid"}]})");
  ASSERT_EQ(partial.status, 201) << partial.text;
  EXPECT_EQ(partial.body.at("items")[0].at("error").at("status"), 503);
  EXPECT_EQ(partial.body.at("items")[1].at("created"), true);
}

// Removed types
// --------------------------------------------------------------------------------------------------------

class RemovedTypes : public UncachedTypes {
 protected:
  std::string dead_job() {
    const std::string id = make_job("o-1", R"(,"max_attempts":1)");
    backend.time += std::chrono::minutes(2);
    backend.finish(std::stoll(id), FinishRequest::Kind::dead, "no");
    return id;
  }
};

TEST_F(RemovedTypes, KeepTheirNameInListsAndAnswers) {
  const std::string id = dead_job();
  ASSERT_EQ(call("DELETE", "/v1/types/order.unpaid").status, 200);
  EXPECT_EQ(get("/v1/jobs/" + id).body.at("biz_type"), "order.unpaid");
  const Answer list = get("/v1/jobs?biz_type=order.unpaid");
  ASSERT_EQ(list.status, 200) << list.text;
  EXPECT_EQ(list.body.at("items").size(), 1u);
  EXPECT_EQ(get("/v1/types/order.unpaid").status, 404);
  EXPECT_EQ(create("order.unpaid").status, 422);
}

TEST_F(RemovedTypes, AreNamedInReportsAndBulkOperations) {
  dead_job();
  ASSERT_EQ(call("DELETE", "/v1/types/order.unpaid").status, 200);
  for (const char* name : {"day", "dead", "dead_now", "outcome", "backlog"}) {
    const Answer report = get(std::string("/v1/reports/") + name + "?type=order.unpaid");
    EXPECT_EQ(report.status, 200) << name << report.text;
    EXPECT_EQ(backend.database.reports_asked.back().biz_type, "order.unpaid") << name;
  }
  const Answer retry = post("/v1/bulk", R"({"action":"retry","filter":{"biz_type":"order.unpaid"}})");
  ASSERT_EQ(retry.status, 202) << retry.text;
  EXPECT_EQ(retry.body.at("matched"), 1);
  MonoTime now{std::chrono::hours(1)};
  while (backend.bulk_runner.is_busy()) now = std::max(now, backend.bulk_runner.step(now));
  const Json ended = get("/v1/bulk/" + retry.body.at("bulk_id").get<std::string>()).body;
  EXPECT_EQ(ended.at("state"), "done");
  EXPECT_EQ(ended.at("changed"), 0) << "no job of a removed type is revived";
  EXPECT_EQ(ended.at("missed"), 1);
}

TEST_F(RemovedTypes, ReviveNoJob) {
  const std::string id = dead_job();
  ASSERT_EQ(call("DELETE", "/v1/types/order.unpaid").status, 200);
  const Answer one = post("/v1/jobs/" + id + "/retry");
  EXPECT_EQ(one.status, 409) << one.text;
  EXPECT_NE(one.text.find("removed"), std::string::npos) << one.text;
  EXPECT_EQ(one.body.at("job").at("status"), "dead");
  EXPECT_EQ(post("/v1/jobs/retry", R"({"biz_type":"order.unpaid"})").status, 422);
  EXPECT_EQ(call("PUT", "/v1/types/order.unpaid", R"({"handler":{"kind":"noop"}})").status, 201) << "is new again";
  EXPECT_EQ(call("PUT", "/v1/types/order.unpaid", R"({"handler":{"kind":"noop"}})").status, 200);
  EXPECT_EQ(post("/v1/jobs/" + id + "/retry").status, 200);
}

}  // namespace
}  // namespace tocsin
