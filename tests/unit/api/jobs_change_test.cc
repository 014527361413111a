#include "api/context.h"
#include "api/time_text.h"
#include "support/api_fixture.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

// ---- change

using ChangeJobs = ApiTest;

TEST_F(ChangeJobs, CancelHasADefiniteAnswer) {
  const std::string pending = make_job("a"), running = make_job("b"), done = make_job("c");
  backend.time += 2min;
  backend.claim(std::stoll(running));
  backend.finish(std::stoll(done), FinishRequest::Kind::done);

  const Answer cancelled = post("/v1/jobs/" + pending + "/cancel");
  EXPECT_EQ(cancelled.status, 200);
  EXPECT_EQ(cancelled.body.at("result"), "cancelled");
  EXPECT_EQ(cancelled.body.at("job").at("status"), "cancelled");

  const Answer late = post("/v1/jobs/" + running + "/cancel");
  EXPECT_EQ(late.status, 409);
  EXPECT_EQ(late.body.at("result"), "running");
  EXPECT_EQ(late.body.at("title"), "Conflict");
  EXPECT_EQ(late.body.at("job").at("job_id"), running);

  const Answer too_late = post("/v1/jobs/" + done + "/cancel");
  EXPECT_EQ(too_late.status, 409);
  EXPECT_EQ(too_late.body.at("result"), "finished");
  EXPECT_EQ(too_late.body.at("job").at("status"), "done");

  EXPECT_EQ(post("/v1/jobs/" + pending + "/cancel").body.at("result"), "finished");
  EXPECT_EQ(post("/v1/jobs/4096000/cancel").status, 404);
  EXPECT_EQ(post("/v1/jobs/x/cancel").status, 400);
}

TEST_F(ChangeJobs, CancelByIdsAnswersEachId) {
  const std::string pending = make_job("a"), running = make_job("b");
  backend.time += 2min;
  backend.claim(std::stoll(running));
  const Answer answer =
      post("/v1/jobs/cancel", R"({"job_ids":[")" + pending + R"(",")" + running +
                                  R"(","4096000","1023","98765432109876543210","0","98765432109876543210",")" +
                                  pending + "\"]}");
  ASSERT_EQ(answer.status, 200) << answer.text;
  EXPECT_EQ(answer.body.at("cancelled"), Json::array({pending}));
  EXPECT_EQ(answer.body.at("running"), Json::array({running}));
  EXPECT_EQ(answer.body.at("finished"), Json::array());
  EXPECT_EQ(answer.body.at("not_found"), Json::array({"4096000", "1023", "98765432109876543210", "0"}));
}

TEST_F(ChangeJobs, CancelByKeyTakesAllOrOneType) {
  backend.add_type("other");
  const std::string a = make_job("7"), b = make_job("7");
  post("/v1/jobs", R"({"biz_type":"other","biz_id":"7","delay_ms":120000})");
  EXPECT_EQ(post("/v1/jobs/cancel", R"({"biz_id":7,"biz_type":"order.unpaid"})").body.at("cancelled").size(), 2u);
  EXPECT_EQ(post("/v1/jobs/cancel", R"({"biz_id":"7"})").body.at("cancelled").size(), 1u);
  EXPECT_EQ(post("/v1/jobs/cancel", R"({"biz_id":"unknown"})").body.at("cancelled").size(), 0u);
}

TEST_F(ChangeJobs, CancelManyChecksItsBody) {
  EXPECT_EQ(post("/v1/jobs/cancel", "{}").field(), "biz_id");
  EXPECT_EQ(post("/v1/jobs/cancel", R"({"biz_id":"a","job_ids":["1"]})").field(), "biz_id");
  EXPECT_EQ(post("/v1/jobs/cancel", R"({"job_ids":["1","x"]})").field(), "job_ids[1]");
  EXPECT_EQ(post("/v1/jobs/cancel", R"({"job_ids":[1]})").field(), "job_ids[0]");
  EXPECT_EQ(post("/v1/jobs/cancel", R"({"job_ids":["1"],"biz_type":"order.unpaid"})").field(), "biz_type");
  EXPECT_EQ(post("/v1/jobs/cancel", R"({"biz_id":"a","biz_type":"nope"})").status, 422);
  EXPECT_EQ(post("/v1/jobs/cancel", R"({"biz_id":""})").field(), "biz_id");
}

TEST_F(ChangeJobs, RescheduleMovesAPendingJob) {
  const std::string one = make_job();
  const Answer moved = post("/v1/jobs/" + one + "/reschedule", R"({"action_time":"2026-04-01T00:00:00Z"})");
  EXPECT_EQ(moved.status, 200);
  EXPECT_EQ(moved.body.at("action_time"), "2026-04-01T00:00:00.000000Z");
  EXPECT_TRUE(backend.hints.empty());
  EXPECT_EQ(post("/v1/jobs/" + one + "/reschedule", R"({"delay_ms":1000})").body.at("fire_at"),
            "2026-03-01T12:00:01.000000Z");
  EXPECT_EQ(backend.hints.size(), 1u);
  EXPECT_EQ(post("/v1/jobs/" + one + "/reschedule", "{}").field(), "action_time");
  EXPECT_EQ(post("/v1/jobs/" + one + "/reschedule", R"({"delay_ms":1,"x":1})").field(), "x");
  EXPECT_EQ(post("/v1/jobs/" + one + "/reschedule").status, 400);
  post("/v1/jobs/" + one + "/cancel");
  const Answer late = post("/v1/jobs/" + one + "/reschedule", R"({"delay_ms":1})");
  EXPECT_EQ(late.status, 409);
  EXPECT_EQ(late.body.at("result"), "finished");
  EXPECT_EQ(post("/v1/jobs/4096000/reschedule", R"({"delay_ms":1})").status, 404);
}

TEST_F(ChangeJobs, RunMakesAPendingJobDue) {
  const std::string one = make_job();
  const Answer answer = post("/v1/jobs/" + one + "/run");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body.at("fire_at"), "2026-03-01T12:00:00.000000Z");
  EXPECT_EQ(answer.body.at("action_time"), "2026-03-01T12:01:00.000000Z");
  EXPECT_EQ(backend.hints.size(), 1u);
  backend.claim(std::stoll(one));
  EXPECT_EQ(post("/v1/jobs/" + one + "/run").body.at("result"), "running");
}

TEST_F(ChangeJobs, RetryRevivesTheDead) {
  const std::string one = make_job();
  EXPECT_EQ(post("/v1/jobs/" + one + "/retry").body.at("result"), "pending");
  backend.time += 2min;
  backend.finish(std::stoll(one), FinishRequest::Kind::dead, "no such order");
  const Answer answer = post("/v1/jobs/" + one + "/retry");
  EXPECT_EQ(answer.status, 200) << answer.text;
  EXPECT_EQ(answer.body.at("status"), "pending");
  EXPECT_EQ(answer.body.at("attempts"), 0);
  EXPECT_EQ(answer.body.at("errors")[0].at("message"), "no such order");
}

TEST_F(ChangeJobs, RetryManyRevivesAType) {
  for (const char* key : {"a", "b", "c"}) make_job(key);
  backend.time += 2min;
  for (const auto& [number, row] : std::map(backend.database.live()))
    backend.finish(number, FinishRequest::Kind::dead, "x");
  const Answer some =
      post("/v1/jobs/retry", R"({"biz_type":"order.unpaid","limit":2,"rate_per_s":10,"reason":"mended"})");
  EXPECT_EQ(some.body.at("retried"), 2) << some.text;
  EXPECT_EQ(backend.recorded.back().action, "retryJobs");
  EXPECT_EQ(backend.recorded.back().reason, "mended");
  EXPECT_EQ(post("/v1/jobs/retry", R"({"biz_type":"order.unpaid","to":"2020-01-01T00:00:00Z"})").body.at("retried"), 0);
  EXPECT_EQ(post("/v1/jobs/retry", R"({"biz_type":"order.unpaid","from":"2020-01-01T00:00:00Z"})").body.at("retried"),
            1);
  EXPECT_EQ(post("/v1/jobs/retry", R"({})").field(), "biz_type");
  EXPECT_EQ(post("/v1/jobs/retry", R"({"biz_type":"x"})").status, 422);
  EXPECT_EQ(post("/v1/jobs/retry", R"({"biz_type":"order.unpaid","limit":10001})").field(), "limit");
  EXPECT_EQ(post("/v1/jobs/retry", R"({"biz_type":"order.unpaid","rate_per_s":0})").field(), "rate_per_s");
}

// ---- explain

using Explain = ApiTest;

TEST_F(Explain, SaysWhyAJobHasNotFired) {
  const std::string one = make_job();
  const auto reason = [&] { return get("/v1/jobs/" + one + "/explain").body.at("reason").get<std::string>(); };
  EXPECT_EQ(reason(), "Not due yet: due at 2026-03-01T12:01:00.000000Z, in 1 min 0 s.");
  backend.time += 70s;
  EXPECT_NE(reason().find("Overdue by 10.0 s"), std::string::npos);
  EXPECT_EQ(reason().find("about to be claimed"), std::string::npos) << "ten scans have not found it";
  EXPECT_NE(reason().find("an audit of all lanes every 5 minutes"), std::string::npos);
  backend.time -= 9s;
  EXPECT_NE(reason().find("It is about to be claimed"), std::string::npos);
  backend.time += 9s;
  backend.hold = "the type is at its limit of 2 running jobs";
  EXPECT_NE(reason().find(backend.hold), std::string::npos);
  post("/v1/types/order.unpaid/pause", R"({"until":"2026-03-02T00:00:00Z"})");
  EXPECT_NE(reason().find("order.unpaid is paused until 2026-03-02T00:00:00.000000Z"), std::string::npos);
  post("/v1/types/order.unpaid/resume");
  EXPECT_EQ(reason().find("it will be dead"), std::string::npos);
  call("PUT", "/v1/types/order.unpaid", R"({"handler":{"kind":"noop"},"catch_up":{"drop_older_than_ms":5000}})");
  EXPECT_NE(reason().find("it will be dead in place of running"), std::string::npos) << reason();
  call("PUT", "/v1/types/order.unpaid", R"({"handler":{"kind":"noop"}})");
  backend.finish(std::stoll(one), FinishRequest::Kind::retry, "HTTP 500");
  EXPECT_EQ(reason(),
            "Waits for its next attempt at 2026-03-01T12:01:20.000000Z, in 10.0 s. Attempt 1 of 16 failed. Last error: "
            "HTTP 500.");
  backend.time += 15s;
  backend.claim(std::stoll(one));
  EXPECT_NE(reason().find("Attempt 2 of 16 is running on node node-1; its lease lasts until 2026-03-01T12:01:55"),
            std::string::npos);
  backend.time += 31s;
  backend.hold.clear();
  EXPECT_NE(
      reason().find("its lease ended 1.0 s ago without a result. The job is due again, and counts as running until"
                    " it is claimed. It is about to be claimed"),
      std::string::npos)
      << reason();
  backend.time += 29s;
  EXPECT_NE(reason().find("No node has claimed it yet"), std::string::npos) << reason();
  backend.hold = "no consumer asks this node for jobs of its type";
  EXPECT_NE(reason().find("It waits: " + backend.hold), std::string::npos) << reason();
  EXPECT_EQ(get("/v1/jobs/" + one + "/explain").body.at("status"), "running");
  const Answer refused = post("/v1/jobs/" + one + "/cancel");
  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(refused.body.at("result"), "running");
  EXPECT_NE(refused.body.at("detail").get<std::string>().find("its lease has ended"), std::string::npos);
  post("/v1/types/order.unpaid/pause");
  EXPECT_NE(reason().find("order.unpaid is paused."), std::string::npos) << reason();
  post("/v1/types/order.unpaid/resume");
  backend.finish(std::stoll(one), FinishRequest::Kind::dead, "gone");
  EXPECT_NE(reason().find("Dead at"), std::string::npos);
}

TEST_F(Explain, AnExhaustedJobIsAboutToBeDeadAlsoWhileItsTypeIsPaused) {
  call("PUT", "/v1/types/order.unpaid", R"({"handler":{"kind":"noop"},"max_attempts":1})");
  const std::string id = make_job();
  const auto reason = [&] { return get("/v1/jobs/" + id + "/explain").body.at("reason").get<std::string>(); };
  backend.time += 1min;
  backend.claim(std::stoll(id));
  backend.time += 32s;
  EXPECT_NE(reason().find("about to be dead"), std::string::npos) << reason();
  post("/v1/types/order.unpaid/pause");
  EXPECT_NE(reason().find("about to be dead"), std::string::npos) << reason();
  backend.time += 1h;
  EXPECT_EQ(reason().find("about to be dead"), std::string::npos) << "the scans have not found it, or it is refused";
  EXPECT_NE(reason().find("no node has made the job dead yet"), std::string::npos) << reason();
}

TEST_F(Explain, SaysThatAJobWaitsForItsAcknowledgement) {
  backend.add_type("pulled", R"({"kind":"pull"})");
  backend.add_type("sent", R"({"kind":"webhook","url":"http://127.0.0.1/","async":true})");
  backend.add_type("plain", R"({"kind":"webhook","url":"http://127.0.0.1/","async":false})");
  const auto reason_of = [&](const std::string& type) {
    const Answer made = post("/v1/jobs", R"({"biz_id":"a","delay_ms":0,"biz_type":")" + type + "\"}");
    const std::string id = made.body.at("job_id");
    backend.claim(std::stoll(id));
    return get("/v1/jobs/" + id + "/explain").body.at("reason").get<std::string>();
  };
  EXPECT_EQ(reason_of("pulled"),
            "Attempt 1 of 16 was leased to a consumer on node node-1; it waits for the acknowledgement until its lease "
            "ends at 2026-03-01T12:00:30.000000Z, in 30.0 s.");
  EXPECT_NE(reason_of("sent").find("may acknowledge it later; it waits for the acknowledgement until"),
            std::string::npos);
  EXPECT_EQ(reason_of("plain").find("acknowledge"), std::string::npos);
}

TEST_F(Explain, SaysThatAJobCancelledBetweenAttemptsHadStarted) {
  const std::string one = make_job();
  backend.time += 70s;
  backend.finish(std::stoll(one), FinishRequest::Kind::retry, "HTTP 500");
  ASSERT_EQ(post("/v1/jobs/" + one + "/cancel").status, 200);
  const std::string reason = get("/v1/jobs/" + one + "/explain").body.at("reason");
  EXPECT_NE(reason.find("between attempts: 1 of 16 had started. Last error: HTTP 500."), std::string::npos) << reason;
  const Json job = get("/v1/jobs/" + one).body;
  EXPECT_EQ(job.at("lateness_ms"), 10000.0);
  const std::string never = make_job("o-2");
  ASSERT_EQ(post("/v1/jobs/" + never + "/cancel").status, 200);
  const std::string before = get("/v1/jobs/" + never + "/explain").body.at("reason");
  EXPECT_NE(before.find("before it started."), std::string::npos) << before;
}

TEST_F(Explain, HasEveryPublishedField) {
  const Answer answer = get("/v1/jobs/" + make_job() + "/explain");
  const Json schema = get("/openapi.json").body.at("components").at("schemas").at("Explanation");
  for (const auto& name : schema.at("required")) EXPECT_TRUE(answer.body.contains(name.get<std::string>())) << name;
  EXPECT_EQ(answer.body.size(), schema.at("properties").size());
  EXPECT_EQ(answer.body.at("database"), "tocsin");
  EXPECT_EQ(answer.body.at("attempts_left"), 16);
  EXPECT_EQ(answer.body.at("limits").at("ttr_ms"), 30000);
  EXPECT_EQ(get("/v1/jobs/4096000/explain").status, 404);
}

TEST_F(ChangeJobs, RetryManyRefusesATimeThatEndsBeforeItBegins) {
  const Answer answer = post(
      "/v1/jobs/retry", R"({"biz_type":"order.unpaid","from":"2026-03-02T00:00:00Z","to":"2026-03-01T00:00:00Z"})");
  EXPECT_EQ(answer.status, 400) << answer.text;
  EXPECT_EQ(answer.field(), "from");
}

// ---- who waits for whom

using RequestPaths = ApiTest;

TEST_F(RequestPaths, ReadsThatMayBeSlowHaveThreadsOfTheirOwn) {
  const std::string id = make_job("o-1");
  backend.posted = 0;
  for (const std::string& path :
       {std::string("/v1/jobs"), std::string("/v1/jobs?biz_id=o-1&status=done"), std::string("/v1/stats"),
        std::string("/v1/shards"), std::string("/v1/reports/hour"), "/v1/jobs/" + id + "/explain",
        std::string("/v1/types"), std::string("/v1/types/order.unpaid"), std::string("/v1/overview")}) {
    EXPECT_EQ(get(path).status, 200) << path;
    EXPECT_EQ(backend.posted_reads, backend.posted) << path;
  }
  EXPECT_EQ(backend.posted_reads, 9);
}

TEST_F(RequestPaths, RetriesOfATypeDelayNoOtherRequest) {
  make_job("o-1");
  backend.posted = 0;
  EXPECT_EQ(post("/v1/jobs/retry", R"({"biz_type":"order.unpaid"})").status, 200);
  EXPECT_EQ(backend.posted, 1);
  EXPECT_EQ(backend.posted_type_retries, 1);
}

TEST_F(RequestPaths, SingleRequestsShareStatementsAndWaitForNoOtherWork) {
  const std::string id = make_job("o-1");
  backend.posted = 0;
  EXPECT_EQ(get("/v1/jobs/" + id).status, 200);
  EXPECT_EQ(get("/v1/jobs?biz_id=o-1&biz_type=order.unpaid&limit=5").status, 200);
  EXPECT_EQ(post("/v1/jobs/" + id + "/reschedule", R"({"delay_ms":1000})").status, 200);
  EXPECT_EQ(post("/v1/jobs/" + id + "/run").status, 200);
  EXPECT_EQ(post("/v1/jobs/cancel", R"({"biz_id":"o-1"})").status, 200);
  EXPECT_EQ(post("/v1/jobs/" + id + "/cancel").status, 409);
  EXPECT_EQ(backend.posted, 0);
}

TEST_F(RequestPaths, ATimedOutListSuggestsAFilter) {
  const ApiContext context(backend, 1024);
  const Problem problem = context.problem_of({ErrorCode::unavailable, "statement timeout", kTooSlow}, 0);
  EXPECT_EQ(problem.status, 503);
  EXPECT_NE(problem.detail.find("biz_id"), std::string::npos) << problem.detail;
  EXPECT_EQ(problem.detail.find("statement"), std::string::npos) << problem.detail;
}

TEST_F(RequestPaths, AKeyWithoutJobsIsAnsweredAsSuch) {
  const Json none{{"cancelled", Json::array()},
                  {"running", Json::array()},
                  {"finished", Json::array()},
                  {"not_found", Json::array()}};
  for (const char* body : {R"({"biz_id":"unknown"})", R"({"biz_id":"unknown","biz_type":"order.unpaid"})"}) {
    const Answer answer = post("/v1/jobs/cancel", body);
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, none) << answer.text;
  }
  const Answer list = get("/v1/jobs?biz_id=unknown");
  EXPECT_EQ(list.body, (Json{{"items", Json::array()}, {"next_cursor", nullptr}})) << list.text;
}

TEST_F(RequestPaths, AKeyOfManyJobsIsCancelled) {
  for (std::size_t i = 0; i <= ClientStore::kMostOfOneKeyTogether; ++i) make_job("many");
  const Answer answer = post("/v1/jobs/cancel", R"({"biz_id":"many"})");
  EXPECT_EQ(answer.body.at("cancelled").size(), ClientStore::kMostOfOneKeyTogether + 1);
  EXPECT_EQ(backend.posted_waiting, 0) << "no job of it was locked";
  EXPECT_FALSE(answer.body.contains("more"));
  EXPECT_FALSE(answer.body.contains("more_finished"));
}

TEST_F(RequestPaths, ASecondTryThatIsInDoubtLeavesTheAnswersOfTheFirst) {
  backend.before_work = [this] {
    if (backend.posted_waiting > 0) backend.fails = ErrorCode::in_doubt;
  };
  for (const bool is_key : {false, true}) {
    std::string free, held = make_job("many");
    for (std::size_t i = 0; i < ClientStore::kMostOfOneKeyTogether; ++i) free = make_job("many");
    backend.database.lock(std::stoll(held));
    const Answer answer =
        post("/v1/jobs/cancel", is_key ? R"({"biz_id":"many"})" : R"({"job_ids":[")" + free + R"(",")" + held + "\"]}");
    ASSERT_EQ(answer.status, 200) << answer.text;
    EXPECT_EQ(answer.body.at("cancelled").size(), is_key ? ClientStore::kMostOfOneKeyTogether * 2 - 1 : 1U);
    EXPECT_EQ(answer.body.at("in_doubt"), Json::array({held}));
    backend.posted_waiting = 0;
    backend.fails.reset();
    backend.database.unlock(std::stoll(held));
    post("/v1/jobs/" + held + "/cancel");
  }
}

TEST_F(RequestPaths, OnlyLockedJobsOfALargeKeyWait) {
  const std::string held = make_job("many");
  for (const bool is_waiting_full : {false, true}) {
    for (std::size_t i = 0; i < ClientStore::kMostOfOneKeyTogether; ++i) make_job("many");
    backend.database.lock(std::stoll(held));
    backend.are_many_waiting = is_waiting_full;
    const Answer answer = post("/v1/jobs/cancel", R"({"biz_id":"many"})");
    ASSERT_EQ(answer.status, 200) << answer.text;
    EXPECT_EQ(answer.body.at("cancelled").size(), ClientStore::kMostOfOneKeyTogether);
    EXPECT_EQ(answer.body.at("locked"), Json::array({held}));
    EXPECT_EQ(backend.posted_waiting, 1);
  }
}

// None of the type is live or among the newest that have ended, and yet there is one.
TEST_F(RequestPaths, AKeyOfManyJobsReportsUnnamedEndedJobs) {
  backend.add_type("rare");
  const Answer rare = post("/v1/jobs", R"({"biz_type":"rare","biz_id":"many","delay_ms":60000})");
  post("/v1/jobs/" + rare.body.at("job_id").get<std::string>() + "/cancel");
  for (std::size_t i = 0; i < ClientStore::kMostNamed; ++i) post("/v1/jobs/" + make_job("many") + "/cancel");
  for (std::size_t i = 0; i <= ClientStore::kMostOfOneKeyTogether; ++i) make_job("many");
  const Answer answer = post("/v1/jobs/cancel", R"({"biz_id":"many","biz_type":"rare"})");
  for (const char* list : {"cancelled", "running", "finished", "not_found"})
    EXPECT_EQ(answer.body.at(list), Json::array()) << list;
  EXPECT_EQ(answer.body.value("more_finished", false), true);
}

TEST_F(RequestPaths, AKeyOfTooManyJobsIsCancelledInSteps) {
  std::string jobs;
  for (std::size_t i = 0; i < ClientStore::kMostOfOneKey; ++i)
    jobs += R"({"biz_type":"order.unpaid","biz_id":"many","delay_ms":60000},)";
  jobs.pop_back();
  ASSERT_EQ(post("/v1/jobs/batch", R"({"jobs":[)" + jobs + "]}").status, 201);
  const std::string last = make_job("many");
  const Answer first = post("/v1/jobs/cancel", R"({"biz_id":"many"})");
  EXPECT_EQ(first.body.at("cancelled").size(), ClientStore::kMostOfOneKey);
  EXPECT_EQ(first.body.value("more", false), true);
  const Answer second = post("/v1/jobs/cancel", R"({"biz_id":"many"})");
  EXPECT_EQ(second.body.at("cancelled"), Json::array({last}));
  EXPECT_FALSE(second.body.contains("more"));
}

TEST_F(RequestPaths, EndedJobsOfALargeKeyAreNamedInPart) {
  for (std::size_t i = 0; i <= ClientStore::kMostNamed; ++i) post("/v1/jobs/" + make_job("past") + "/cancel");
  const Answer answer = post("/v1/jobs/cancel", R"({"biz_id":"past"})");
  EXPECT_EQ(answer.body.at("finished").size(), ClientStore::kMostNamed);
  EXPECT_EQ(answer.body.at("more_finished"), true);
}

// A job that replaces the one with key "k", and a new one.
constexpr const char* kReplacingBatch =
    R"({"jobs":[{"biz_type":"order.unpaid","biz_id":"o-1","idempotency_key":"k","on_conflict":"replace","delay_ms":9},)"
    R"({"biz_type":"order.unpaid","biz_id":"o-3","idempotency_key":"k","delay_ms":1000}]})";

TEST_F(RequestPaths, RequestsThatWaitForLocksHaveTheirOwnThreads) {
  const std::string held = make_job("o-1", R"(,"idempotency_key":"k")"), free = make_job("o-2");
  backend.database.lock(std::stoll(held));
  EXPECT_EQ(post("/v1/jobs/batch", kReplacingBatch).status, 503);
  EXPECT_EQ(backend.posted_waiting, 1);
  const Answer each = post("/v1/jobs/batch?partial=true", kReplacingBatch);
  ASSERT_EQ(each.status, 201) << each.text;
  EXPECT_EQ(each.body.at("items")[0].at("error").at("status"), 503);
  EXPECT_EQ(each.body.at("items")[1].at("created"), true);
  EXPECT_EQ(backend.posted_waiting, 2);
  const Answer some = post("/v1/jobs/cancel", R"({"job_ids":[")" + held + R"(",")" + free + "\"]}");
  EXPECT_EQ(some.body.at("locked"), Json::array({held}));
  EXPECT_EQ(some.body.at("cancelled"), Json::array({free}));
  EXPECT_EQ(backend.posted_waiting, 3);
  backend.database.unlock(std::stoll(held));
  EXPECT_EQ(post("/v1/jobs/batch", kReplacingBatch).status, 201);
  EXPECT_EQ(post("/v1/jobs/cancel", R"({"job_ids":[")" + held + "\"]}").body.at("cancelled"), Json::array({held}));
  EXPECT_EQ(backend.posted_waiting, 3) << "nothing was held";
}

// Each of many callers with locked rows or held keys of their own would wait for all those before it.
TEST_F(RequestPaths, WorkThatWaitedLongForAThreadWaitsForNoLock) {
  const std::string held = make_job("o-1", R"(,"idempotency_key":"k")"), free = make_job("o-2");
  backend.database.lock(std::stoll(held));
  const std::string ids = R"({"job_ids":[")" + held + R"(",")" + free + "\"]}";
  for (const Duration queued : {Duration(2s), Duration(3s)}) {
    backend.queued = queued;
    backend.database.lock_waits = 0;
    EXPECT_EQ(post("/v1/jobs/batch", kReplacingBatch).status, 503);
    const Answer each = post("/v1/jobs/batch?partial=true", kReplacingBatch);
    ASSERT_EQ(each.status, 201) << each.text;
    EXPECT_EQ(each.body.at("items")[0].at("error").at("status"), 503);
    EXPECT_TRUE(each.body.at("items")[1].contains("job_id"));
    EXPECT_EQ(post("/v1/jobs/cancel", ids).body.at("locked"), Json::array({held}));
    EXPECT_EQ(backend.database.lock_waits, queued < 3s ? 3 : 0);
  }
}

TEST_F(RequestPaths, APartialBatchWhoseOnlyJobHasAHeldKeyAnswersPerItem) {
  backend.database.lock(std::stoll(make_job("o-1", R"(,"idempotency_key":"k")")));
  const std::string job =
      R"({"biz_type":"order.unpaid","biz_id":"o-1","idempotency_key":"k","on_conflict":"replace","delay_ms":9})";
  const Answer answer = post("/v1/jobs/batch?partial=true", R"({"jobs":[{"biz_type":"","biz_id":"x"},)" + job + "]}");
  ASSERT_EQ(answer.status, 201) << answer.text;
  EXPECT_EQ(answer.body.at("items")[0].at("error").at("status"), 400);
  EXPECT_EQ(answer.body.at("items")[1].at("error").at("status"), 503);
  EXPECT_EQ(post("/v1/jobs/batch?partial=true", R"({"jobs":[)" + job + "]}").status, 201);
}

TEST_F(RequestPaths, RefusedRowsAreReportedAndCostNoOtherJob) {
  const std::string bad = make_job("o-1"), free = make_job("o-2");
  backend.database.refuse(std::stoll(bad), FakeDatabase::unwritable_row());
  backend.database.refuse_new("bad", FakeDatabase::unwritable_row());
  const Answer some = post("/v1/jobs/cancel", R"({"job_ids":[")" + bad + R"(",")" + free + "\"]}");
  EXPECT_EQ(some.body.at("unavailable"), Json::array({bad}));
  EXPECT_EQ(some.body.at("cancelled"), Json::array({free}));
  EXPECT_EQ(post("/v1/jobs/" + bad + "/cancel").status, 503);
  const std::string jobs = R"({"jobs":[{"biz_type":"order.unpaid","biz_id":"bad","idempotency_key":"k","delay_ms":9},)"
                           R"({"biz_type":"order.unpaid","biz_id":"o-3","idempotency_key":"k","delay_ms":9}]})";
  EXPECT_EQ(post("/v1/jobs/batch", jobs).status, 503);
  const Answer each = post("/v1/jobs/batch?partial=true", jobs);
  ASSERT_EQ(each.status, 201) << each.text;
  EXPECT_EQ(each.body.at("items")[0].at("error").at("status"), 503);
  EXPECT_EQ(each.body.at("items")[1].at("created"), true) << "nothing was created before";
}

TEST_F(RequestPaths, RequestsBehindManyWaitingOnesAreAnsweredAtOnce) {
  const std::string held = make_job("o-1", R"(,"idempotency_key":"k")"), free = make_job("o-2");
  backend.database.lock(std::stoll(held));
  backend.are_many_waiting = true;
  const Answer whole = post("/v1/jobs/batch", kReplacingBatch);
  EXPECT_EQ(whole.status, 503) << "nothing was created";
  EXPECT_EQ(whole.retry_after, "1");
  const Answer each = post("/v1/jobs/batch?partial=true", kReplacingBatch);
  ASSERT_EQ(each.status, 201) << each.text;
  EXPECT_EQ(each.body.at("items")[0].at("error").at("status"), 503);
  EXPECT_EQ(each.body.at("items")[1].at("created"), true);
  const Answer some = post("/v1/jobs/cancel", R"({"job_ids":[")" + held + R"(",")" + free + "\"]}");
  EXPECT_EQ(some.body.at("locked"), Json::array({held}));
  EXPECT_EQ(some.body.at("cancelled"), Json::array({free}));
}

TEST_F(RequestPaths, LockedRowsAreReportedAsLocked) {
  const std::string id = make_job("o-1");
  backend.database.lock(std::stoll(id));
  EXPECT_EQ(post("/v1/jobs/" + id + "/reschedule", R"({"delay_ms":1000})").status, 503);
  EXPECT_EQ(post("/v1/jobs/" + id + "/run").status, 503);
  const Answer answer = post("/v1/jobs/cancel", R"({"biz_id":"o-1"})");
  EXPECT_EQ(answer.body.at("locked"), Json::array({id}));
}

}  // namespace
}  // namespace tocsin
