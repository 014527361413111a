#include "api/time_text.h"
#include "support/api_fixture.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

std::string with_attribute(std::size_t bytes) {
  return R"({"biz_type":"order.unpaid","biz_id":"a","delay_ms":1,"attribute":")" + std::string(bytes - 2, 'x') + "\"}";
}

// ---- create

using CreateJob = ApiTest;

TEST_F(CreateJob, Answers201WithTheJob) {
  const Answer answer = post(
      "/v1/jobs",
      R"({"biz_type":"order.unpaid","biz_id":"o-1","action_time":"2026-03-01T12:15:00+00:00","attribute":{"n":1.10},"max_attempts":3})");
  ASSERT_EQ(answer.status, 201) << answer.text;
  EXPECT_EQ(answer.body.at("status"), "pending");
  EXPECT_EQ(answer.body.at("biz_id"), "o-1");
  EXPECT_EQ(answer.body.at("biz_type"), "order.unpaid");
  EXPECT_EQ(answer.body.at("action_time"), "2026-03-01T12:15:00.000000Z");
  EXPECT_EQ(answer.body.at("max_attempts"), 3);
  EXPECT_EQ(answer.body.at("attempts"), 0);
  EXPECT_EQ(answer.body.at("lateness_ms"), nullptr);
  EXPECT_NE(answer.text.find(R"("attribute":{"n":1.10})"), std::string::npos);
  const Answer again = get("/v1/jobs/" + answer.body.at("job_id").get<std::string>());
  EXPECT_EQ(again.body, answer.body);
}

TEST_F(CreateJob, TakesNumbersAsBusinessKeys) {
  const Answer answer = post("/v1/jobs", R"({"biz_type":"order.unpaid","biz_id":18446744073709551615,"delay_ms":0})");
  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(answer.body.at("biz_id"), "18446744073709551615");
}

TEST_F(CreateJob, UsesTheTypesOwnLimitOfAttempts) {
  EXPECT_EQ(post("/v1/jobs", R"({"biz_type":"order.unpaid","biz_id":"a","delay_ms":0})").body.at("max_attempts"), 16);
}

TEST_F(CreateJob, AcceptsPastTimesFrom2000) {
  EXPECT_EQ(post("/v1/jobs", R"({"biz_type":"order.unpaid","biz_id":"a","action_time":"2000-01-01T00:00:00Z"})").status,
            201);
  EXPECT_EQ(post("/v1/jobs", R"({"biz_type":"order.unpaid","biz_id":"a","action_time":"2076-02-28T12:00:00Z"})").status,
            201);
}

TEST_F(CreateJob, HintsOnlyWhatIsDueSoon) {
  make_job();
  EXPECT_TRUE(backend.hints.empty());
  const Answer soon = post("/v1/jobs", R"({"biz_type":"order.unpaid","biz_id":"a","delay_ms":4000})");
  ASSERT_EQ(backend.hints.size(), 1u);
  EXPECT_EQ(std::to_string(backend.hints[0].job_id), soon.body.at("job_id"));
  EXPECT_EQ(backend.hints[0].fire_at, backend.time + 4s);
}

TEST_F(CreateJob, TakesAWellFormedTraceparent) {
  HttpRequest request;
  request.method = "POST";
  request.target = "/v1/jobs";
  request.content_type = "application/json";
  request.body = R"({"biz_type":"order.unpaid","biz_id":"a","delay_ms":9000})";
  request.traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  ASSERT_EQ(send(request).status, 201);
  EXPECT_EQ(backend.database.live().begin()->second.job.traceparent, request.traceparent);
  request.traceparent = "nonsense";
  EXPECT_EQ(send(request).status, 201);
}

TEST_F(CreateJob, AnswersARepeatWithTheFirstJob) {
  const std::string body =
      R"({"biz_type":"order.unpaid","biz_id":"a","delay_ms":60000,"idempotency_key":"k","attribute":[1]})";
  const Answer first = post("/v1/jobs", body);
  const Answer second = post("/v1/jobs", body);
  EXPECT_EQ(first.status, 201);
  EXPECT_EQ(second.status, 200);
  EXPECT_EQ(second.body, first.body);
}

TEST_F(CreateJob, RefusesAnotherBodyUnderTheSameKey) {
  const std::string id = make_job("a", R"(,"idempotency_key":"k")");
  const Answer answer =
      post("/v1/jobs", R"({"biz_type":"order.unpaid","biz_id":"a","delay_ms":5,"idempotency_key":"k"})");
  EXPECT_EQ(answer.status, 409);
  EXPECT_EQ(answer.field(), "idempotency_key");
  EXPECT_EQ(answer.body.at("job_id"), id);
}

TEST_F(CreateJob, FollowsOnConflict) {
  const std::string id = make_job("a", R"(,"idempotency_key":"k")");
  const auto again = [&](const std::string& rule, int delay_ms) {
    return post("/v1/jobs", R"({"biz_type":"order.unpaid","biz_id":"a","idempotency_key":"k","delay_ms":)" +
                                std::to_string(delay_ms) + R"(,"on_conflict":")" + rule + "\"}");
  };
  EXPECT_EQ(again("reject", 1).status, 409);
  EXPECT_EQ(again("latest", 1000).body.at("action_time"), "2026-03-01T12:01:00.000000Z");
  EXPECT_TRUE(backend.hints.empty());
  EXPECT_EQ(again("earliest", 1000).body.at("action_time"), "2026-03-01T12:00:01.000000Z");
  EXPECT_EQ(backend.hints.size(), 1u);
  EXPECT_EQ(again("replace", 7000).body.at("action_time"), "2026-03-01T12:00:07.000000Z");
  backend.time += 8s;
  backend.claim(std::stoll(id));
  const Answer late = again("replace", 1);
  EXPECT_EQ(late.status, 409);
  EXPECT_EQ(late.field(), "idempotency_key");
  EXPECT_EQ(late.body.at("job_id"), id);
  EXPECT_EQ(late.body.at("job_status"), "running");
  EXPECT_NE(late.text.find("It is running."), std::string::npos) << late.text;
}

TEST_F(CreateJob, ReturnsTheStatusOfTheJobThatHasTheKey) {
  const std::string id = make_job("o-1", R"(,"idempotency_key":"k")");
  ASSERT_EQ(post("/v1/jobs/" + id + "/cancel").status, 200);
  const auto again = [&](const std::string& rule) {
    return post("/v1/jobs",
                R"({"biz_type":"order.unpaid","biz_id":"o-1","delay_ms":7,"idempotency_key":"k","on_conflict":")" +
                    rule + "\"}");
  };
  for (const char* rule : {"keep", "replace", "earliest", "latest", "reject"}) {
    const Answer answer = again(rule);
    EXPECT_EQ(answer.status, 409) << rule;
    EXPECT_EQ(answer.body.at("job_id"), id);
    EXPECT_EQ(answer.body.at("job_status"), "cancelled");
    const std::string detail = answer.body.at("detail");
    EXPECT_NE(detail.find("It is cancelled since 2026-03-01T12:00:00"), std::string::npos) << detail;
    EXPECT_NE(detail.find("a new job needs another key"), std::string::npos) << detail;
  }
}

TEST_F(CreateJob, KnowsATypeThatAnotherNodeMade) {
  BizType type;
  type.name = "new.type";
  type.handler_kind = "noop";
  type.handler_json = R"({"kind":"noop"})";
  backend.database.put_type(type, backend.time);
  EXPECT_EQ(post("/v1/jobs", R"({"biz_type":"new.type","biz_id":"a","delay_ms":1})").status, 201);
  EXPECT_EQ(backend.reloads, 1);
}

TEST_F(CreateJob, RefusesAnyTimeBefore2000) {
  const auto create_at = [&](const std::string& time) {
    return post("/v1/jobs", R"({"biz_type":"order.unpaid","biz_id":"a","action_time":")" + time + "\"}").status;
  };
  EXPECT_EQ(create_at("1999-12-31T23:59:59.999999999Z"), 400);
  EXPECT_EQ(create_at("1999-12-31T23:59:59.999999Z"), 400);
  EXPECT_EQ(create_at("2000-01-01T00:00:00Z"), 201);
  EXPECT_EQ(create_at("2000-01-01T00:00:00.000000001Z"), 201);
}

TEST_F(CreateJob, MapsDatabaseErrorsToAnswers) {
  const std::string body = R"({"biz_type":"order.unpaid","biz_id":"a","delay_ms":1})";
  backend.fails = ErrorCode::unavailable;
  const Answer down = post("/v1/jobs", body);
  EXPECT_EQ(down.status, 503);
  EXPECT_EQ(down.retry_after, "1");
  EXPECT_NE(down.body.at("detail").get<std::string>().find("db.example:5432/tocsin"), std::string::npos);
  backend.fails = ErrorCode::conflict;
  const Answer undone = post("/v1/jobs", body);
  EXPECT_EQ(undone.status, 503);
  EXPECT_EQ(undone.body.at("detail"), "Another transaction holds what this needs: repeat the request.");
  backend.fails = ErrorCode::in_doubt;
  const Answer doubt = post("/v1/jobs", body);
  EXPECT_EQ(doubt.status, 503);
  EXPECT_NE(doubt.body.at("detail").get<std::string>().find("idempotency_key"), std::string::npos);
  backend.fails.reset();
  backend.is_full = true;
  const Answer full = post("/v1/jobs", body);
  EXPECT_EQ(full.status, 429);
  EXPECT_EQ(full.retry_after, "1");
}

struct BadJob {
  const char* name;
  std::string body;
  int status;
  const char* field;
};

class BadJobs : public ApiTest, public testing::WithParamInterface<BadJob> {};

TEST_P(BadJobs, AreRefusedWithoutEffect) {
  const Answer answer = post("/v1/jobs", GetParam().body);
  EXPECT_EQ(answer.status, GetParam().status) << answer.text;
  EXPECT_EQ(answer.field(), GetParam().field) << answer.text;
  EXPECT_TRUE(backend.database.live().empty());
}

std::string job(const std::string& members) {
  return R"({"biz_type":"order.unpaid","biz_id":"a","delay_ms":1)" + members + "}";
}
std::string at(const std::string& time) {
  return R"({"biz_type":"order.unpaid","biz_id":"a","action_time":)" + time + "}";
}
std::string id(const std::string& value) {
  return R"({"biz_type":"order.unpaid","delay_ms":1,"biz_id":)" + value + "}";
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadJobs,
    testing::Values(
        BadJob{"NoBody", "", 400, ""}, BadJob{"NotJson", "x", 400, ""}, BadJob{"NotAnObject", "[]", 400, ""},
        BadJob{"Empty", "{}", 400, "biz_type"},
        BadJob{"UnknownType", R"({"biz_type":"x","biz_id":"a","delay_ms":1})", 422, "biz_type"},
        BadJob{"TypeNotText", R"({"biz_type":5,"biz_id":"a","delay_ms":1})", 400, "biz_type"},
        BadJob{"TypeEmpty", R"({"biz_type":"","biz_id":"a","delay_ms":1})", 400, "biz_type"},
        BadJob{"NoKey", R"({"biz_type":"order.unpaid","delay_ms":1})", 400, "biz_id"},
        BadJob{"EmptyKey", id("\"\""), 400, "biz_id"},
        BadJob{"LongKey", id("\"" + std::string(129, 'x') + "\""), 400, "biz_id"},
        BadJob{"LongKeyInBytes",
               id("\"" + std::string(64, 'x') +
                  "\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac"
                  "\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\""),
               400, "biz_id"},
        BadJob{"KeyWithNul", id(R"("a\u0000b")"), 400, "biz_id"}, BadJob{"KeyNegative", id("-1"), 400, "biz_id"},
        BadJob{"KeyFraction", id("1.5"), 400, "biz_id"},
        BadJob{"KeyTooLarge", id("18446744073709551616"), 400, "biz_id"},
        BadJob{"KeyBoolean", id("true"), 400, "biz_id"}, BadJob{"KeyObject", id("{}"), 400, "biz_id"},
        BadJob{"KeyInvalidUtf8", id("\"\xFF\""), 400, ""}, BadJob{"KeyLoneSurrogate", id(R"("\ud83d")"), 400, "biz_id"},
        BadJob{"NoTime", R"({"biz_type":"order.unpaid","biz_id":"a"})", 400, "action_time"},
        BadJob{"BothTimes",
               R"({"biz_type":"order.unpaid","biz_id":"a","delay_ms":1,"action_time":"2026-03-01T12:00:00Z"})", 400,
               "delay_ms"},
        BadJob{"NoOffset", at("\"2026-03-01T12:00:00\""), 400, "action_time"},
        BadJob{"NotATime", at("\"soon\""), 400, "action_time"},
        BadJob{"TimeIsNumber", at("1772366400"), 400, "action_time"},
        BadJob{"Infinity", at("\"infinity\""), 400, "action_time"},
        BadJob{"Before2000", at("\"1999-12-31T23:59:59Z\""), 400, "action_time"},
        BadJob{"PastHorizon", at("\"2076-03-02T00:00:00Z\""), 400, "action_time"},
        BadJob{"FebruaryThirtieth", at("\"2026-02-30T00:00:00Z\""), 400, "action_time"},
        BadJob{"LeapSecond", at("\"2026-06-30T23:59:60Z\""), 400, "action_time"},
        BadJob{"NegativeDelay", R"({"biz_type":"order.unpaid","biz_id":"a","delay_ms":-1})", 400, "delay_ms"},
        BadJob{"FractionalDelay", R"({"biz_type":"order.unpaid","biz_id":"a","delay_ms":1.5})", 400, "delay_ms"},
        BadJob{"DelayAsText", R"({"biz_type":"order.unpaid","biz_id":"a","delay_ms":"1"})", 400, "delay_ms"},
        BadJob{"DelayTooLong", R"({"biz_type":"order.unpaid","biz_id":"a","delay_ms":1600000000000})", 400, "delay_ms"},
        BadJob{"DelayOverflow", R"({"biz_type":"order.unpaid","biz_id":"a","delay_ms":9223372036854775807})", 400,
               "delay_ms"},
        BadJob{"DelayOutOfRange", R"({"biz_type":"order.unpaid","biz_id":"a","delay_ms":1e400})", 400, "delay_ms"},
        BadJob{"NoAttempts", job(R"(,"max_attempts":0)"), 400, "max_attempts"},
        BadJob{"TooManyAttempts", job(R"(,"max_attempts":1001)"), 400, "max_attempts"},
        BadJob{"AttemptsText", job(R"(,"max_attempts":"3")"), 400, "max_attempts"},
        BadJob{"EmptyIdempotencyKey", job(R"(,"idempotency_key":"")"), 400, "idempotency_key"},
        BadJob{"LongIdempotencyKey", job(R"(,"idempotency_key":")" + std::string(257, 'k') + "\""), 400,
               "idempotency_key"},
        BadJob{"ConflictWithoutKey", job(R"(,"on_conflict":"keep")"), 400, "on_conflict"},
        BadJob{"UnknownConflict", job(R"(,"idempotency_key":"k","on_conflict":"merge")"), 400, "on_conflict"},
        BadJob{"UnknownField", job(R"(,"prio":1)"), 400, "prio"},
        BadJob{"RepeatedField", job(R"(,"biz_id":"b")"), 400, "biz_id"},
        BadJob{"ReadOnlyField", job(R"(,"status":"done")"), 400, "status"},
        BadJob{"TrailingText", job("") + "x", 400, ""},
        BadJob{"LargeAttribute", with_attribute(65537), 400, "attribute"},
        BadJob{"AttributeWithNul", job(R"(,"attribute":{"a":["\u0000"]})"), 400, "attribute"},
        BadJob{"AttributeWithNulKey", job(R"(,"attribute":{"\u0000":1})"), 400, "attribute"},
        BadJob{"AttributeRepeatsKey", job(R"(,"attribute":{"a":1,"a":1})"), 400, "attribute"},
        BadJob{"AttributeOutOfRange", job(R"(,"attribute":[1e400])"), 400, "attribute"},
        BadJob{"AttributeTooDeep", job(",\"attribute\":" + std::string(32, '[') + std::string(32, ']')), 400,
               "attribute"},
        BadJob{"BodyTooLarge", job("") + std::string(300000, ' '), 413, ""}),
    [](const auto& test) { return test.param.name; });

TEST_F(CreateJob, AcceptsValuesAtTheirLimits) {
  const std::string longest_key(128, 'x');
  for (const std::string& body :
       {with_attribute(65536), id("\"" + longest_key + "\""), job(R"(,"max_attempts":1000)"),
        job(R"(,"attribute":null)"), job(R"(,"max_attempts":null,"idempotency_key":null,"on_conflict":null)"),
        job(",\"attribute\":" + std::string(31, '[') + std::string(31, ']'))})
    EXPECT_EQ(post("/v1/jobs", body).status, 201) << body.substr(0, 200);
}

// ---- batch

using Batch = ApiTest;

std::string batch(const std::vector<std::string>& jobs) {
  std::string body = "{\"jobs\":[";
  for (const std::string& one : jobs) body += (body.back() == '[' ? "" : ",") + one;
  return body + "]}";
}

std::string keyed(const std::string& biz_id, int delay_ms) {
  return R"({"biz_type":"order.unpaid","biz_id":")" + biz_id + R"(","idempotency_key":"k","delay_ms":)" +
         std::to_string(delay_ms) + "}";
}

TEST_F(Batch, CreatesAllInOrder) {
  const Answer answer = post("/v1/jobs/batch", batch({keyed("a", 1000), keyed("b", 90000), keyed("a", 1000)}));
  ASSERT_EQ(answer.status, 201) << answer.text;
  const Json& items = answer.body.at("items");
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0].at("created"), true);
  EXPECT_EQ(items[2].at("created"), false);
  EXPECT_EQ(items[0].at("job_id"), items[2].at("job_id"));
  EXPECT_EQ(get("/v1/jobs/" + items[1].at("job_id").get<std::string>()).body.at("biz_id"), "b");
  EXPECT_EQ(backend.hints.size(), 1u);
}

TEST_F(Batch, OneMistakeUndoesAllAndIsNamed) {
  const Answer answer = post("/v1/jobs/batch", batch({keyed("a", 1), keyed("b", 1), keyed("c", 1), keyed("", 1)}));
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.field(), "jobs[3].biz_id");
  EXPECT_EQ(post("/v1/jobs/batch", batch({keyed("a", 1), "5"})).field(), "jobs[1]");
  EXPECT_EQ(post("/v1/jobs/batch", batch({R"({"biz_type":"x","biz_id":"a","delay_ms":1})"})).field(),
            "jobs[0].biz_type");
  EXPECT_EQ(post("/v1/jobs/batch", batch({R"({"biz_type":"x","biz_id":"a","delay_ms":1})"})).status, 422);
  EXPECT_EQ(post("/v1/jobs/batch", batch({keyed("a", 1), R"({"a":"\u0000"})"})).field(), "jobs[1].a");
  EXPECT_EQ(post("/v1/jobs/batch", R"({"jobs":{}})").field(), "jobs");
  EXPECT_EQ(post("/v1/jobs/batch", R"({})").field(), "jobs");
  EXPECT_EQ(post("/v1/jobs/batch", R"({"jobs":[],"x":1})").field(), "x");
  const Answer partial = post("/v1/jobs/batch?partial=true", R"({"jobs":[)" + keyed("a", 1) + R"(],"x":1})");
  EXPECT_EQ(partial.status, 400);
  EXPECT_EQ(partial.field(), "x");
  EXPECT_TRUE(backend.database.live().empty());
}

TEST_F(Batch, OneRefusalUndoesAll) {
  const std::string first = make_job("b", R"(,"idempotency_key":"k")");
  const Answer answer = post("/v1/jobs/batch", batch({keyed("a", 1), keyed("b", 1)}));
  EXPECT_EQ(answer.status, 409);
  EXPECT_EQ(answer.field(), "jobs[1].idempotency_key");
  EXPECT_EQ(answer.body.at("job_id"), first);
  EXPECT_EQ(backend.database.live().size(), 1u);
  EXPECT_TRUE(backend.hints.empty());
}

TEST_F(Batch, PartialCreatesTheValidItems) {
  make_job("b", R"(,"idempotency_key":"k")");
  const Answer answer =
      post("/v1/jobs/batch?partial=true",
           batch({keyed("", 1), keyed("b", 1), keyed("c", 1), R"({"biz_type":"x","biz_id":"a","delay_ms":1})"}));
  ASSERT_EQ(answer.status, 201) << answer.text;
  const Json& items = answer.body.at("items");
  ASSERT_EQ(items.size(), 4u);
  EXPECT_EQ(items[0].at("error").at("field"), "jobs[0].biz_id");
  EXPECT_EQ(items[0].at("error").at("status"), 400);
  EXPECT_EQ(items[1].at("error").at("status"), 409);
  EXPECT_EQ(items[1].at("error").at("field"), "jobs[1].idempotency_key");
  EXPECT_EQ(items[2].at("created"), true);
  EXPECT_EQ(items[3].at("error").at("status"), 422);
  EXPECT_EQ(backend.database.live().size(), 2u);
  EXPECT_EQ(post("/v1/jobs/batch?partial=yes", batch({})).field(), "partial");
}

TEST_F(Batch, ARefusedOneNamesNoJobThatWasRolledBack) {
  const Answer answer = post("/v1/jobs/batch", batch({keyed("c", 1), keyed("a", 1), keyed("a", 2)}));
  EXPECT_EQ(answer.status, 409);
  EXPECT_EQ(answer.field(), "jobs[2].idempotency_key");
  EXPECT_FALSE(answer.body.contains("job_id")) << answer.text;
  EXPECT_NE(answer.text.find("jobs[1]"), std::string::npos) << answer.text;
  EXPECT_TRUE(backend.database.live().empty());
  const Answer partial = post("/v1/jobs/batch?partial=true", batch({keyed("a", 1), keyed("a", 2)}));
  EXPECT_EQ(partial.body.at("items")[1].at("error").at("job_id"), partial.body.at("items")[0].at("job_id"));
}

TEST_F(Batch, AcceptsAtMostTenThousandJobs) {
  std::vector<std::string> jobs;
  for (int i = 0; i < 10000; ++i) jobs.push_back(keyed("b" + std::to_string(i), 60000));
  EXPECT_EQ(post("/v1/jobs/batch", batch(jobs)).body.at("items").size(), 10000u);
  jobs.push_back(keyed("one-more", 1));
  const Answer answer = post("/v1/jobs/batch", batch(jobs));
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.field(), "jobs");
  EXPECT_EQ(post("/v1/jobs/batch", batch({})).status, 201);
}

// ---- read

using ReadJobs = ApiTest;

TEST_F(ReadJobs, Answer404ForMissingJobs) {
  EXPECT_EQ(get("/v1/jobs/4096").status, 404);
  EXPECT_EQ(get("/v1/jobs/0").status, 404);
  EXPECT_EQ(get("/v1/jobs/1023").status, 404);  // a shard that is not
  EXPECT_EQ(get("/v1/jobs/99999999999999999999").status, 404);
  EXPECT_EQ(get("/v1/jobs/abc").status, 400);
  EXPECT_EQ(get("/v1/jobs/-1").field(), "job_id");
}

TEST_F(ReadJobs, ListsPageByPageNewestFirst) {
  std::vector<std::string> made, seen;
  for (int i = 0; i < 5; ++i) made.insert(made.begin(), make_job("same"));
  std::string cursor;
  int pages = 0;
  do {
    const Answer page = get("/v1/jobs?biz_id=same&limit=2" + (cursor.empty() ? "" : "&cursor=" + cursor));
    ASSERT_EQ(page.status, 200) << page.text;
    for (const auto& one : page.body.at("items")) seen.push_back(one.at("job_id").get<std::string>());
    cursor = page.body.at("next_cursor").is_null() ? "" : page.body.at("next_cursor").get<std::string>();
    ++pages;
  } while (!cursor.empty());
  EXPECT_EQ(seen, made);
  EXPECT_EQ(pages, 3);
}

TEST_F(ReadJobs, AFullLastPageHasNoCursor) {
  make_job("same");
  make_job("same");
  EXPECT_EQ(get("/v1/jobs?limit=2").body.at("next_cursor"), nullptr);
}

TEST_F(ReadJobs, Filters) {
  backend.add_type("other");
  const std::string a = make_job("a");
  post("/v1/jobs", R"({"biz_type":"other","biz_id":"a","delay_ms":120000})");
  post("/v1/jobs/" + a + "/cancel");
  const auto count = [&](const std::string& query) {
    const Answer answer = get("/v1/jobs?" + query);
    return answer.status == 200 ? static_cast<int>(answer.body.at("items").size()) : -answer.status;
  };
  EXPECT_EQ(count(""), 2);
  EXPECT_EQ(count("biz_id=a"), 2);
  EXPECT_EQ(count("biz_id=b"), 0);
  EXPECT_EQ(count("biz_type=other"), 1);
  EXPECT_EQ(count("status=cancelled"), 1);
  EXPECT_EQ(count("status=done"), 0);
  EXPECT_EQ(count("from=2026-03-01T12:01:30Z"), 1);
  EXPECT_EQ(count("to=2026-03-01T13:01:30+01:00"), 1);
  EXPECT_EQ(count("to=2026-03-01T13:01:30%2B01:00"), 1);
  EXPECT_EQ(count("biz_type=nope"), -422);
}

TEST_F(ReadJobs, NameATypeThatAnotherNodeMade) {
  BizType type;
  type.name = "new.type";
  type.handler_json = R"({"kind":"noop"})";
  NewJob job;
  job.biz_id = "a";
  job.type_id = backend.database.put_type(type, backend.time).type.type_id;
  job.when.in = 1min;
  ASSERT_TRUE(backend.create(job, [](const Result<CreateReply>&) {}));
  EXPECT_EQ(get("/v1/jobs").body.at("items")[0].at("biz_type"), "new.type");
  EXPECT_EQ(backend.reloads, 1);
}

TEST_F(ReadJobs, RefuseBadFilters) {
  const std::pair<const char*, const char*> table[] = {
      {"limit=0", "limit"},      {"limit=1001", "limit"}, {"limit=x", "limit"},      {"limit=", "limit"},
      {"limit=1.5", "limit"},    {"limit=+1", "limit"},   {"status=open", "status"}, {"status=", "status"},
      {"from=today", "from"},    {"to=2026-03-01", "to"}, {"cursor=x", "cursor"},    {"cursor=", "cursor"},
      {"cursor=MTIz", "cursor"}, {"biz_id=", "biz_id"},   {"offset=3", "offset"},    {"biz_type=", "biz_type"}};
  for (const auto& [query, field] : table) {
    const Answer answer = get(std::string("/v1/jobs?") + query);
    EXPECT_GE(answer.status, 400) << query;
    EXPECT_EQ(answer.field(), field) << query;
  }
}

TEST_F(ReadJobs, ReportADatabaseThatIsDown) {
  const std::string one = make_job();
  backend.fails = ErrorCode::unavailable;
  EXPECT_EQ(get("/v1/jobs").status, 503);
  EXPECT_EQ(get("/v1/jobs/" + one).status, 503);
  EXPECT_EQ(get("/v1/jobs/" + one + "/explain").status, 503);
  backend.is_full = true;
  EXPECT_EQ(get("/v1/jobs").status, 429);
}

}  // namespace
}  // namespace tocsin
