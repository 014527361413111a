// /v1/reports/...
#include "support/api_fixture.h"

namespace tocsin {
namespace {

class ReportsApi : public ApiTest {
 protected:
  explicit ReportsApi(int databases = 1) : ApiTest(databases) {}
  static std::string hour_row(const std::string& slot, const std::string& type, int done, double max_ms,
                              const std::string& buckets) {
    return Json{{"slot", slot},     {"biz_type", type}, {"created", 3},      {"done", done},
                {"cancelled", 0},   {"dead", 0},        {"dropped_late", 0}, {"revived", 0},
                {"attempts", done}, {"retried", 0},     {"max_ms", max_ms},  {"buckets", Json::parse(buckets)}}
        .dump();
  }
  static std::string packed(int bucket, std::int64_t n) {
    return std::to_string((static_cast<std::int64_t>(bucket) << 44) + n);
  }
};

class ReportsOfTwo : public ReportsApi {
 protected:
  ReportsOfTwo() : ReportsApi(2) {}
};

constexpr const char* kSlot = "2026-03-01T12:00:00.000000Z";

TEST_F(ReportsApi, ARangeWithoutDataIsEmptyAndNoError) {
  for (const char* name :
       {"hour", "day", "lateness", "duration", "slo", "dead", "outcome", "delay", "horizon", "backlog", "audit"}) {
    const Answer answer = get(std::string("/v1/reports/") + name +
                              "?from=2026-03-01T00:00:00Z&to=2026-03-02T00:00:00Z&type=order.unpaid&tz=UTC");
    EXPECT_EQ(answer.status, 200) << name << answer.text;
    EXPECT_EQ(answer.body, Json::parse(R"({"items":[],"next_cursor":null,"tz":"UTC"})")) << name;
  }
}

TEST_F(ReportsApi, TheAnswerNamesTheZoneOfItsRows) {
  EXPECT_EQ(get("/v1/reports/day?tz=Europe/Berlin").body.at("tz"), "Europe/Berlin");
  for (const char* name : {"hour", "lateness", "duration", "slo", "dead", "outcome", "delay", "horizon", "audit"})
    EXPECT_EQ(get(std::string("/v1/reports/") + name + "?tz=Europe/Berlin").body.at("tz"), "UTC") << name;
  EXPECT_FALSE(get("/v1/reports/dead").body.contains("tz"));
}

TEST_F(ReportsApi, ADueCountIsExactOnlyWhenThoseOfAllDatabasesAre) {
  const auto row = [](const char* type, bool is_exact) {
    return Json{{"biz_type", type}, {"due", 2000}, {"is_exact", is_exact}}.dump();
  };
  backend.database.report_rows[Report::backlog] = {row("a", true), row("b", false)};
  const Answer answer = get("/v1/reports/backlog");
  EXPECT_EQ(answer.body["items"][0]["is_exact"], true) << answer.text;
  EXPECT_EQ(answer.body["items"][1]["is_exact"], false);
}

TEST_F(ReportsApi, TheLastMinutesOfEveryTypeAreAReport) {
  backend.database.report_rows[Report::recent] = {Json{
      {"biz_type", "a"},
      {"seconds", 900.0},
      {"created", 2},
      {"done", 1},
      {"dead", 0},
      {"n", 4},
      {"missed", 0},
      {"max_ms", 10},
      {"target_ms", 1000},
      {"target_share", 0.9},
      {"buckets", {}}}.dump()};
  const Answer answer = get("/v1/reports/recent");
  ASSERT_EQ(answer.body["items"].size(), 1U) << answer.text;
  EXPECT_EQ(answer.body["items"][0]["n"], 4);
  EXPECT_TRUE(answer.body["items"][0].contains("p99_ms"));
}

TEST_F(ReportsApi, WhatIsWrongIsNamed) {
  EXPECT_EQ(get("/v1/reports/hour?colour=red").field(), "colour");
  EXPECT_EQ(get("/v1/reports/hour?colour=red").status, 400);
  EXPECT_EQ(get("/v1/reports/hour?from=yesterday").field(), "from");
  EXPECT_EQ(get("/v1/reports/hour?limit=0").field(), "limit");
  EXPECT_EQ(get("/v1/reports/hour?limit=1001").field(), "limit");
  EXPECT_EQ(get("/v1/reports/hour?cursor=nonsense").field(), "cursor");
  EXPECT_EQ(get("/v1/reports/nothing").status, 404);
  const Answer unknown = get("/v1/reports/dead?type=nobody");
  EXPECT_EQ(unknown.status, 422);
  EXPECT_EQ(unknown.field(), "type");
}

TEST_F(ReportsApi, TheFilterReachesTheDatabase) {
  get("/v1/reports/day?type=order.unpaid&from=2026-03-01T01:00:00%2B01:00&to=2026-03-02T00:00:00Z&tz=Europe/"
      "Berlin&limit=7");
  ASSERT_EQ(backend.database.reports_asked.size(), 1U);
  const ReportQuery& asked = backend.database.reports_asked[0];
  EXPECT_EQ(asked.report, Report::day);
  EXPECT_EQ(asked.biz_type, "order.unpaid");
  EXPECT_EQ(asked.from, WallTime(std::chrono::sys_days(std::chrono::year(2026) / 3 / 1)));
  EXPECT_EQ(asked.tz, "Europe/Berlin");
  EXPECT_EQ(asked.limit, 8) << "one more, to know whether there is another page";
}

TEST_F(ReportsApi, PagesGoOnBehindTheLastRow) {
  backend.database.report_rows[Report::outcome] = {
      R"({"created_day":"2026-03-02T00:00:00.000000Z","biz_type":"a","created":1,"done":1,"cancelled":0,"dead":0,"open":0})",
      R"({"created_day":"2026-03-01T00:00:00.000000Z","biz_type":"a","created":2,"done":2,"cancelled":0,"dead":0,"open":0})"};
  const Answer first = get("/v1/reports/outcome?limit=1");
  ASSERT_EQ(first.body.at("items").size(), 1U) << first.text;
  EXPECT_EQ(first.body["items"][0]["created"], 1);
  get("/v1/reports/outcome?limit=1&cursor=" + first.body["next_cursor"].get<std::string>());
  EXPECT_EQ(backend.database.reports_asked.back().after,
            (std::vector<std::string>{"2026-03-02T00:00:00.000000Z", "a"}));
  EXPECT_EQ(get("/v1/reports/dead?cursor=" + first.body["next_cursor"].get<std::string>()).field(), "cursor");
}

TEST_F(ReportsApi, AReportThatComesWholeHasPagesToo) {
  for (const char* type : {"a", "b", "c"})
    backend.database.report_rows[Report::backlog].push_back(
        Json{{"biz_type", type}, {"due", 1}, {"oldest_due_at", kSlot}, {"oldest_age_ms", 5.0}, {"waits_for", "workers"}}
            .dump());
  backend.database.report_rows[Report::backlog].resize(3);
  const Answer first = get("/v1/reports/backlog?limit=2");
  ASSERT_EQ(first.body["items"].size(), 2U);
  const Answer second = get("/v1/reports/backlog?limit=2&cursor=" + first.body["next_cursor"].get<std::string>());
  ASSERT_EQ(second.body["items"].size(), 1U) << second.text;
  EXPECT_EQ(second.body["items"][0]["biz_type"], "c");
  EXPECT_EQ(second.body["next_cursor"], nullptr);
}

TEST_F(ReportsOfTwo, DatabasesAreAddedUpAndHistogramsMerged) {
  // 100 us and 10 ms: 90 of 100 starts lie in the first bucket of the first database.
  backend.database_at(0).report_rows[Report::hour] = {
      hour_row(kSlot, "order.unpaid", 5, 0.1, "[" + packed(57, 90) + "]")};
  backend.database_at(1).report_rows[Report::hour] = {
      hour_row(kSlot, "order.unpaid", 7, 10, "[" + packed(163, 10) + "]"), hour_row(kSlot, "zoo", 1, 1, "[]")};
  const Answer answer = get("/v1/reports/hour");
  ASSERT_EQ(answer.body["items"].size(), 2U) << answer.text;
  const Json& item = answer.body["items"][0];
  EXPECT_EQ(item["done"], 12);
  EXPECT_EQ(item["created"], 6);
  EXPECT_NEAR(item["p50_ms"].get<double>(), 0.1, 0.01);
  EXPECT_GT(item["p90_ms"].get<double>(), 5);
  EXPECT_EQ(item["max_ms"], 10.0);
  EXPECT_FALSE(item.contains("buckets"));
  EXPECT_EQ(answer.body["items"][1]["p50_ms"], nullptr);
}

TEST_F(ReportsOfTwo, ATargetIsJudgedByTheSumOfAllDatabases) {
  const auto row = [](int n, int missed) {
    return Json{{"biz_type", "order.unpaid"},
                {"target_ms", 1000.0},
                {"target_share", 0.9},
                {"days", 30},
                {"n", n},
                {"missed", missed}}
        .dump();
  };
  backend.database_at(0).report_rows[Report::slo] = {row(90, 0)};
  backend.database_at(1).report_rows[Report::slo] = {row(10, 5)};
  const Json item = get("/v1/reports/slo").body["items"][0];
  EXPECT_EQ(item["n"], 100);
  EXPECT_DOUBLE_EQ(item["share"].get<double>(), 0.95);
  EXPECT_NEAR(item["budget_left"].get<double>(), 0.5, 1e-9);
  EXPECT_EQ(item["is_met"], true);
}

TEST_F(ReportsOfTwo, ADatabaseThatIsAwayIsNamedAsMissing) {
  backend.database_at(0).report_rows[Report::hour] = {hour_row(kSlot, "order.unpaid", 5, 1, "[]")};
  backend.silent.insert(1);
  const Answer answer = get("/v1/reports/hour");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body["items"].size(), 1U);
  EXPECT_EQ(answer.body["missing"].size(), 1U) << answer.text;
}

}  // namespace
}  // namespace tocsin
