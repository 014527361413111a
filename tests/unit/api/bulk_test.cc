#include <gtest/gtest.h>

#include "support/api_fixture.h"

namespace tocsin {
namespace {

class BulkApi : public ApiTest {
 public:
  Answer start(const std::string& body) { return post("/v1/bulk", body); }
  void run_all() {
    MonoTime now{std::chrono::hours(1)};
    while (backend.bulk_runner.is_busy()) now = std::max(now, backend.bulk_runner.step(now));
  }
};

TEST_F(BulkApi, ADryRunCountsAndChangesNothing) {
  make_job("a");
  make_job("b");
  const Answer answer = start(R"({"action":"cancel","filter":{"biz_type":"order.unpaid"},"dry_run":true})");
  EXPECT_EQ(answer.status, 200) << answer.text;
  EXPECT_EQ(answer.body, Json({{"matched", 2}}));
  EXPECT_EQ(get("/v1/jobs?status=pending").body["items"].size(), 2U);
  EXPECT_TRUE(backend.recorded.empty() || backend.recorded.back().action != "startBulk");
}

TEST_F(BulkApi, HasAnIdAndProgressAndEndsWithDefiniteNumbers) {
  make_job("a");
  make_job("b");
  const Answer started =
      start(R"({"action":"cancel","filter":{"biz_type":"order.unpaid"},"expected":2,"reason":"shop closed"})");
  ASSERT_EQ(started.status, 202) << started.text;
  EXPECT_EQ(started.body["matched"], 2);
  const std::string id = started.body["bulk_id"];
  EXPECT_EQ(get("/v1/bulk/" + id).body["state"], "running");
  run_all();
  const Json ended = get("/v1/bulk/" + id).body;
  EXPECT_EQ(ended["state"], "done");
  EXPECT_EQ(ended["changed"], 2);
  EXPECT_EQ(ended["missed"], 0);
  EXPECT_EQ(ended["reason"], "shop closed");
  EXPECT_EQ(get("/v1/bulk").body["items"].size(), 1U);
}

TEST_F(BulkApi, AnotherCountThanExpectedIsRefused) {
  make_job("a");
  const Answer answer = start(R"({"action":"cancel","filter":{"biz_type":"order.unpaid"},"expected":2})");
  EXPECT_EQ(answer.status, 409);
  EXPECT_EQ(answer.field(), "expected");
  EXPECT_EQ(answer.body["matched"], 1);
  EXPECT_EQ(get("/v1/jobs?status=pending").body["items"].size(), 1U);
  const std::string dry = R"({"action":"cancel","filter":{"biz_type":"order.unpaid"},"dry_run":true,"expected":)";
  EXPECT_EQ(start(dry + "2}").status, 409);
  EXPECT_EQ(start(dry + "1}").status, 200);
}

TEST_F(BulkApi, NothingIsCountedOrStartedWhileAShardMoves) {
  make_job("a");
  const std::string body = R"({"action":"cancel","filter":{"biz_type":"order.unpaid"})";
  const auto expect_refused = [&](const std::string& request) {
    const Answer answer = start(request);
    EXPECT_EQ(answer.status, 503) << request;
    EXPECT_NE(answer.text.find("A shard is moving"), std::string::npos) << answer.text;
  };
  backend.bulks.is_frozen = true;
  expect_refused(body + "}");
  expect_refused(body + R"(,"dry_run":true})");
  backend.bulks.is_frozen = false;
  backend.bulks.moves_while_counting = true;
  expect_refused(body + "}");
  expect_refused(body + R"(,"dry_run":true})");
  EXPECT_EQ(get("/v1/bulk").body["items"].size(), 0U);
  EXPECT_EQ(get("/v1/jobs?status=pending").body["items"].size(), 1U);
  backend.bulks.moves_while_counting = false;
  EXPECT_EQ(start(body + "}").status, 202);
}

TEST_F(BulkApi, InvalidFieldsAreNamed) {
  struct Case {
    std::string body, field;
    int status;
  };
  const std::vector<Case> cases = {
      {R"({"filter":{"biz_id":"a"}})", "action", 400},
      {R"({"action":"delete","filter":{"biz_id":"a"}})", "action", 422},
      {R"({"action":"cancel"})", "filter", 400},
      {R"({"action":"cancel","filter":{}})", "filter", 422},
      {R"({"action":"cancel","filter":{"status":"pending"}})", "filter", 422},
      {R"({"action":"cancel","filter":{"biz_id":"a","status":"dead"}})", "filter.status", 422},
      {R"({"action":"cancel","filter":{"biz_id":"a","colour":"red"}})", "filter.colour", 400},
      {R"({"action":"cancel","filter":{"biz_id":"a","reason":"x"}})", "filter.reason", 422},
      {R"({"action":"cancel","filter":{"biz_type":"no.such"}})", "filter.biz_type", 422},
      {R"({"action":"cancel","filter":{"biz_id":"a"},"delay_ms":5})", "delay_ms", 422},
      {R"({"action":"reschedule","filter":{"biz_id":"a"}})", "action_time", 422},
      {R"({"action":"retry","filter":{"biz_id":"a"},"rate_per_s":0})", "rate_per_s", 400},
      {R"({"action":"reschedule","filter":{"biz_id":"a"},"action_time":"1999-12-31T23:59:59Z"})", "action_time", 400},
      {R"({"action":"reschedule","filter":{"biz_id":"a"},"action_time":"2077-01-01T00:00:00Z"})", "action_time", 400},
      {R"({"action":"reschedule","filter":{"biz_id":"a"},"action_time":"2076-03-01T12:00:00Z","spread_ms":1})",
       "spread_ms", 422},
      {R"({"action":"reschedule","filter":{"biz_id":"a"},"delay_ms":1577923200000,"spread_ms":1})", "spread_ms", 422},
      {R"({"action":"reschedule","filter":{"biz_id":"a"},"delay_ms":1577923200001})", "delay_ms", 400},
  };
  for (const Case& wrong : cases) {
    const Answer answer = start(wrong.body);
    EXPECT_EQ(answer.status, wrong.status) << wrong.body << answer.text;
    EXPECT_EQ(answer.field(), wrong.field) << wrong.body << answer.text;
  }
  EXPECT_EQ(get("/v1/bulk/77").status, 404);
  EXPECT_EQ(get("/v1/bulk/x").status, 404);
  EXPECT_EQ(post("/v1/bulk/77/stop").status, 404);
}

TEST_F(BulkApi, AStopRequestEndsTheOperation) {
  make_job("a");
  const Answer started = start(R"({"action":"cancel","filter":{"biz_id":"a"},"rate_per_s":1})");
  const std::string id = started.body["bulk_id"];
  EXPECT_EQ(post("/v1/bulk/" + id + "/stop").body["is_stopping"], true);
  run_all();
  EXPECT_EQ(get("/v1/bulk/" + id).body["state"], "stopped");
  EXPECT_EQ(get("/v1/bulk/" + id).body["missed"], 1);
}

TEST_F(BulkApi, TheLastDeadlineOfASpreadMayLieFiftyYearsAhead) {
  const auto of = [](const std::string& when) {
    return R"({"action":"reschedule","filter":{"biz_id":"a"},"dry_run":true,)" + when + "}";
  };
  EXPECT_EQ(start(of(R"("delay_ms":1577923199999,"spread_ms":1)")).status, 200);
  EXPECT_EQ(start(of(R"("action_time":"2076-03-01T11:59:59Z","spread_ms":1000)")).status, 200);
}

TEST_F(BulkApi, AnOperationThatNoNodeRunsIsStoppedAtOnce) {
  make_job("a");
  make_job("b");
  const std::string all = R"("action":"cancel","filter":{"biz_type":"order.unpaid"})";
  const Answer first = start("{" + all + R"(,"rate_per_s":1})"), waiting = start("{" + all + "}");
  ASSERT_EQ(waiting.status, 202) << waiting.text;
  backend.time += std::chrono::seconds(1);
  const Answer stopped = post("/v1/bulk/" + waiting.body["bulk_id"].get<std::string>() + "/stop");
  EXPECT_EQ(stopped.body["state"], "stopped") << stopped.text;
  EXPECT_EQ(stopped.body["changed"], 0);
  EXPECT_EQ(stopped.body["missed"], 2);
  EXPECT_EQ(stopped.body["is_stopping"], false);
  EXPECT_TRUE(stopped.body["finished_at"].is_string());
  const std::string id = first.body["bulk_id"];
  EXPECT_EQ(post("/v1/bulk/" + id + "/stop").body["state"], "running") << "its node ends it";
  run_all();
  EXPECT_EQ(get("/v1/bulk/" + id).body["state"], "stopped");
}

TEST_F(BulkApi, WritesAreRecordedWithTheirTarget) {
  const std::string job = make_job("a");
  post("/v1/types/order.unpaid/pause", R"({"reason":"the shop moves"})");
  post("/v1/jobs/" + job + "/cancel");
  start(R"({"action":"run","filter":{"biz_id":"a"},"reason":"try"})");
  ASSERT_EQ(backend.recorded.size(), 4U);
  EXPECT_EQ(backend.recorded[0].action, "createJob");
  EXPECT_EQ(backend.recorded[0].kind, Audit::counted);
  EXPECT_EQ(backend.recorded[1].action, "pauseType");
  EXPECT_EQ(backend.recorded[1].kind, Audit::each);
  EXPECT_EQ(backend.recorded[1].target, "order.unpaid");
  EXPECT_EQ(backend.recorded[1].reason, "the shop moves");
  EXPECT_EQ(backend.recorded[2].target, job);
  EXPECT_EQ(backend.recorded[3].action, "startBulk");
  EXPECT_EQ(backend.recorded[3].reason, "try");
  EXPECT_EQ(backend.recorded[3].matched, 0);
  post("/v1/jobs/" + job + "/cancel");  // refused: it changed nothing
  EXPECT_EQ(backend.recorded.size(), 4U);
}

TEST_F(BulkApi, ARepeatOfACreateThatChangesNothingIsNotRecorded) {
  const auto create = [&](int delay_ms, const std::string& rule) {
    return post("/v1/jobs", R"({"biz_type":"order.unpaid","biz_id":"a","idempotency_key":"k","on_conflict":")" + rule +
                                R"(","delay_ms":)" + std::to_string(delay_ms) + "}")
        .status;
  };
  EXPECT_EQ(create(5000, "keep"), 201);
  EXPECT_EQ(backend.recorded.size(), 1U);
  EXPECT_EQ(create(5000, "keep"), 200);
  EXPECT_EQ(backend.recorded.size(), 1U) << "the job exists unchanged";
  EXPECT_EQ(create(7000, "replace"), 200);
  EXPECT_EQ(backend.recorded.size(), 2U);
}

TEST_F(BulkApi, CallsThatChangeManyJobsAreRecordedWithTheirFilter) {
  for (int i = 0; i < 101; ++i) make_job("many");
  make_job("few");
  backend.recorded.clear();
  post("/v1/jobs/cancel", R"({"biz_id":"few"})");
  post("/v1/jobs/cancel", R"({"biz_id":"many","biz_type":"order.unpaid"})");
  post("/v1/jobs/cancel", R"({"biz_id":"many"})");  // there are none left
  post("/v1/jobs/retry", R"({"biz_type":"order.unpaid"})");
  ASSERT_EQ(backend.recorded.size(), 2U) << "what changed nothing is left out";
  EXPECT_EQ(backend.recorded[0].changed, 1);
  EXPECT_EQ(backend.recorded[0].filter_json, "");
  EXPECT_EQ(backend.recorded[1].changed, 101);
  EXPECT_EQ(backend.recorded[1].filter_json, R"({"biz_id":"many","biz_type":"order.unpaid"})");
}

TEST_F(BulkApi, DeadJobsWithoutAReasonCanBeSelected) {
  EXPECT_EQ(start(R"({"action":"retry","filter":{"reason":""}})").status, 202);
}

}  // namespace
}  // namespace tocsin
